// The path by which samples include the matrix products of the library.
#pragma once
#include <matmul/matmul_intf.h>
