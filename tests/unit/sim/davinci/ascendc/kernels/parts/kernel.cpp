// Words that only the device's compiler knows, and a function whose body is in another file.
#include "parts.h"

// The most negative number of a format, at compile time.
template <class T> struct Lowest {
    static constexpr T value = sizeof(T) == 2 ? -3.38953e+38 : 0;
};

__forceinline__ [host, aicore] int32_t power(int32_t base, int64_t times) { return pow(base, times); }

extern "C" __global__ [aicore] void parts(__gm__ float32_t *x) {
    int32_t aicore = 1, places[4] = {3, 4, 5, 6};
    x[0] = twice<float32_t>(x[0]);
    x[1] = twice<__fp16>(static_cast<__fp16>(x[1]));
    x[2] = static_cast<float>(Lowest<bfloat16_t>::value);
    x[3] = static_cast<float>(power(3, 4));
    x[4] = min(x[4], 2.5f) + max(x[5], 2.5f);
    x[5] = static_cast<float>(places[aicore] + places [ aicore ]);
}
