// Declared for each file, and defined in twice.cpp.
#pragma once
template <class T> [aicore] __attribute__((always_inline)) T twice(T value);
