// The path by which samples include the tiling functions of the library.
#pragma once
#include <tiling_api.h>
