#include "parts.h"

template <class T> [aicore] __attribute__((always_inline)) T twice(T value) { return value + value; }

template float twice<float>(float);
template half twice<half>(half);
