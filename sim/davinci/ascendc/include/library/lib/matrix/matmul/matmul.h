// An older path by which kernels include the matrix products of the library.
#pragma once
#include <lib/matmul_intf.h>
