enum specials { IEEE, LAST, MINUS_ZERO, NONE };
enum kind { FINITE, INFINITE, NOT_A_NUMBER };
enum truncation { FLOOR, MAGNITUDE, ODD };
enum rounding { TO_NEAREST, TO_ZERO, TO_ODD };

struct format {
    int exponent_bits, fraction_bits, unused, bias; /* unused: bits below the code */
    enum specials specials;
    int most;                                       /* exponent of the largest numbers */
    uint64_t sign, largest, overflow, nan;
};

struct wide {
    uint32_t limb[LIMBS]; /* the least significant one first */
};

struct sum {
    int negative;
    struct wide size;
};

struct number {
    int negative, exponent;
    enum kind kind;
    uint64_t significand; /* the value is significand * 2^(exponent - fraction bits) */
};

static struct wide wide(uint64_t value)
{
    struct wide x = {{0}};
    x.limb[0] = (uint32_t)value;
    x.limb[1] = (uint32_t)(value >> 32);
    return x;
}

static int length(const struct wide *x)
{
    int size = 32 * LIMBS;
    while (size && !(x->limb[(size - 1) / 32]))
        size -= 32;
    while (size && !(x->limb[(size - 1) / 32] >> (size - 1) % 32 & 1))
        size--;
    return size;
}

/* Return floor(x * 2^places), and note whether a bit is lost. */
static struct wide shifted(struct wide x, int places, int *lost)
{
    struct wide y = {{0}};
    const int size = length(&x);
    int words, bits;
    if (!size)
        return y;
    if (places <= -size) {
        *lost = 1;
        return y;
    }
    words = places >= 0 ? places / 32 : -((31 - places) / 32);
    bits = places - 32 * words;
    for (int i = 0; i < LIMBS; i++) {
        const int from = i - words;
        if (from >= 0 && from < LIMBS)
            y.limb[i] = x.limb[from] << bits;
        if (bits && from > 0 && from <= LIMBS)
            y.limb[i] |= x.limb[from - 1] >> (32 - bits);
    }
    for (int i = 0; i < -places; i += 32)
        *lost |= -places - i >= 32 ? x.limb[i / 32] != 0
                                   : (x.limb[i / 32] & (((uint32_t)1 << (-places - i)) - 1)) != 0;
    return y;
}

static int compare(const struct wide *x, const struct wide *y)
{
    for (int i = LIMBS - 1; i >= 0; i--)
        if (x->limb[i] != y->limb[i])
            return x->limb[i] > y->limb[i] ? 1 : -1;
    return 0;
}

static struct wide plus(struct wide x, struct wide y)
{
    uint64_t carry = 0;
    for (int i = 0; i < LIMBS; i++) {
        carry += (uint64_t)x.limb[i] + y.limb[i];
        x.limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return x;
}

static struct wide minus(struct wide x, struct wide y)
{
    uint64_t borrow = 0;
    for (int i = 0; i < LIMBS; i++) {
        const uint64_t left = (uint64_t)x.limb[i] - y.limb[i] - borrow;
        x.limb[i] = (uint32_t)left;
        borrow = left >> 63;
    }
    return x;
}

static struct wide times(struct wide x, uint64_t factor)
{
    struct wide total = {{0}};
    for (int half = 0; half < 2; half++) {
        const uint64_t digit = half ? factor >> 32 : factor & UINT32_MAX;
        uint64_t carry = 0;
        for (int i = 0; i + half < LIMBS; i++) {
            carry += digit * x.limb[i] + total.limb[i + half];
            total.limb[i + half] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    return total;
}

static struct sum add(struct sum x, struct sum y)
{
    struct sum total = x;
    if (x.negative == y.negative) {
        total.size = plus(x.size, y.size);
    } else if (compare(&x.size, &y.size) >= 0) {
        total.size = minus(x.size, y.size);
    } else {
        total.size = minus(y.size, x.size);
        total.negative = y.negative;
    }
    if (!length(&total.size))
        total.negative = 0;
    return total;
}

static struct sum cut(struct sum x, int places, enum truncation how, int *lost)
{
    int bits = 0;
    x.size = shifted(x.size, places, &bits);
    *lost |= bits;
    if (how == FLOOR && x.negative && bits)
        x.size = plus(x.size, wide(1));
    if (how == ODD && bits)
        x.size.limb[0] |= 1;
    if (!length(&x.size))
        x.negative = 0;
    return x;
}

/* Return the code of size * 2^last. */
static uint64_t packed(int negative, struct wide size, int last, const struct format *f,
                       enum rounding rounding, int bits)
{
    const int least = 1 - f->bias, spare = f->fraction_bits - bits + f->unused;
    int below = 0, high = 0, lost = 0;
    int top, place, drop;
    uint64_t kept, code;
    top = length(&size) ? last + length(&size) - 1 : least;
    place = (top < least ? least : top) - bits;
    drop = place - last;
    if (drop > 0) {
        size = shifted(size, 1 - drop, &below);
        high = (int)(size.limb[0] & 1);
        drop = 1;
    }
    size = shifted(size, -drop, &lost);
    kept = size.limb[0] | (uint64_t)size.limb[1] << 32;
    if (rounding == TO_NEAREST)
        kept += (uint64_t)(high && (below || (kept & 1)));
    if (rounding == TO_ODD)
        kept |= (uint64_t)(high | below);
    if (place + bits > f->most)
        place = f->most + 1 - bits;
    code = ((uint64_t)(place + bits - least) << bits) + kept;
    if (code > f->largest >> spare) {
        code = f->overflow;
        negative &= f->specials == IEEE || f->specials == NONE;
    } else {
        code <<= spare;
    }
    if (f->specials == MINUS_ZERO)
        negative &= code != 0;
    return code | (negative ? f->sign : 0);
}

static int leading(const struct number *x, const struct format *f)
{
    const struct wide size = wide(x->significand);
    return x->exponent - f->fraction_bits + length(&size) - 1;
}

static struct number decode(uint64_t code, const struct format *f)
{
    struct number x = {(code & f->sign) != 0, 0, FINITE, 0};
    const uint64_t ones = ((uint64_t)1 << f->exponent_bits) - 1;
    const uint64_t all = ((uint64_t)1 << f->fraction_bits) - 1;
    uint64_t field, fraction;
    code >>= f->unused;
    field = code >> f->fraction_bits & ones;
    fraction = code & all;
    if (f->specials == IEEE && field == ones)
        x.kind = fraction ? NOT_A_NUMBER : INFINITE;
    if (f->specials == LAST && field == ones && fraction == all)
        x.kind = NOT_A_NUMBER;
    if (f->specials == MINUS_ZERO && x.negative && !field && !fraction)
        x.kind = NOT_A_NUMBER;
    if (x.kind == FINITE)
        x.significand = fraction | (field ? (uint64_t)1 << f->fraction_bits : 0);
    x.exponent = (int)(field ? field : 1) - f->bias;
    return x;
}
