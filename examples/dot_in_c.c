/* Dot products in C with the bits of a tensor core, for an emulator or a test of your own.
 *
 * Vitruvian writes the rule of an instruction as C99 without dependencies; this program is linked
 * with it, and prints the sum of two vectors of ones and small numbers, step after step:
 *
 *     vitruvian machines h100_mma_fp16_fp32 --c rule
 *     cc -std=c99 -Irule examples/dot_in_c.c rule/h100_mma_fp16_fp32.c -o dot
 *     ./dot 64
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "h100_mma_fp16_fp32.h"

enum { STEP = VITRUVIAN_H100_MMA_FP16_FP32_K, MOST = 1 << 20 };

/* Code of FP16 of element number i: 1, and after it numbers of 2^-10 to 2^-3, with both signs. */
static uint16_t element(long i)
{
    uint16_t exponent = (uint16_t)(15 - 3 - i % 8);

    if (i == 0)
        return 0x3C00;
    return (uint16_t)((i % 3 == 0 ? 0x8000 : 0) | exponent << 10 | (i * 37 & 0x3FF));
}

int main(int count, char **words)
{
    char *end = NULL;
    long terms = count == 2 ? strtol(words[1], &end, 10) : 0;
    uint32_t sum = 0; /* the code of FP32 +0 */

    if (terms < 1 || terms > MOST || terms % STEP != 0 || *end != '\0') {
        fprintf(stderr, "error: the terms must be a multiple of %d up to %d\n", STEP, MOST);
        return 2;
    }
    for (long first = 0; first < terms; first += STEP) {
        uint16_t a[STEP], b[STEP];

        for (int i = 0; i < STEP; i++) {
            a[i] = element(first + i);
            b[i] = element(first + i + 5);
        }
        sum = vitruvian_h100_mma_fp16_fp32(a, b, sum);
    }
    printf("%08" PRIX32 "\n", sum);
    return 0;
}
