enum lanes { TOGETHER, PARITY, HALVES, SIXTEENS };
enum addend { TREE, AFTER, LATE, ALIGNED };
enum zero { SIGNED, POSITIVE, EXACT };
enum flush { NEVER, AFTER_ROUNDING, BEFORE_ROUNDING, UNBOUNDED };

struct scale_format {
    int fraction_bits, bias, mask, subnormals, nan; /* nan: its code, or -1 */
};

struct rule {
    const struct format *a, *b, *c, *convert;
    int window;                                     /* -1: nothing is cut */
    enum truncation truncation;
    int floor;                                      /* least E */
    enum lanes lanes;
    int leading, overflow;                          /* of the products */
    int slices;
    const uint64_t (*masks)[2];
    enum addend addend;
    enum rounding rounding;
    int bits;                                       /* fraction bits of the result */
    enum zero zero;
    int flush;
    enum flush flush_result;
    uint64_t nan;
    const struct scale_format *scale;
    int block;                                      /* values that share a scale */
    const struct rule *add;                         /* the sum of two results */
};

struct term {
    struct sum value; /* the number is value * 2^last */
    int exponent, last, present;
};

struct products {
    int count, all_negative, plus, minus, nan;
    struct term term[TERMS];
};

enum { NO_TERM = -(1 << 20) };

/* Decode a code in its own format or in the one to which it is converted, and flush it. */
static struct number operand(uint64_t code, const struct format **f, const struct rule *r)
{
    struct number x = decode(code, *f);
    if (r->convert && *f != r->convert) {
        const struct format *own = *f;
        *f = r->convert;
        if (x.kind == NOT_A_NUMBER)
            code = (*f)->nan;
        else if (x.kind == INFINITE)
            code = (*f)->overflow | (x.negative ? (*f)->sign : 0);
        else
            code = packed(x.negative, wide(x.significand), x.exponent - own->fraction_bits, *f,
                          TO_NEAREST, (*f)->fraction_bits);
        x = decode(code, *f);
    }
    if (r->flush && leading(&x, *f) < 1 - r->c->bias)
        x.significand = 0;
    return x;
}

static void multiply(struct products *p, const struct rule *r, int n, const uint64_t *a,
                     const uint64_t *b)
{
    *p = (struct products){.all_negative = 1};
    for (int i = 0; i < n; i++) {
        const struct format *f = r->a, *g = r->b;
        const struct number x = operand(a[i], &f, r), y = operand(b[i], &g, r);
        const int negative = x.negative ^ y.negative;
        const int zero = (x.kind == FINITE && !x.significand) ||
                         (y.kind == FINITE && !y.significand);
        const struct wide size = times(wide(x.significand), y.significand);
        const int last = x.exponent + y.exponent - f->fraction_bits - g->fraction_bits;
        const int top = last + length(&size) - 1, present = length(&size) > 0;
        int infinite = x.kind == INFINITE || y.kind == INFINITE;
        p->all_negative &= negative;
        p->nan |= x.kind == NOT_A_NUMBER || y.kind == NOT_A_NUMBER || (infinite && zero);
        if (r->overflow && present && top > r->c->most)
            infinite = 1;
        p->plus |= infinite && !negative;
        p->minus |= infinite && negative;
        for (int part = 0; part < r->slices; part++) {
            struct term *t = &p->term[p->count++];
            t->value.size = times(wide(x.significand & r->masks[part][0]),
                                  y.significand & r->masks[part][1]);
            t->value.negative = negative && length(&t->value.size);
            t->exponent = r->leading ? top : x.exponent + y.exponent;
            t->last = last;
            t->present = present;
        }
    }
}

static struct number decode_scale(int code, const struct scale_format *f)
{
    struct number x = {0, 0, FINITE, 0};
    int field, fraction;
    code &= f->mask;
    field = code >> f->fraction_bits;
    fraction = code & ((1 << f->fraction_bits) - 1);
    x.exponent = (f->subnormals && !field ? 1 : field) - f->bias;
    x.significand = (uint64_t)(f->subnormals && !field ? fraction
                                                       : fraction | 1 << f->fraction_bits);
    if (code == f->nan)
        x.kind = NOT_A_NUMBER;
    return x;
}

/* Add the products in sixteens if the rule says so, and multiply the terms by their scales. */
static void scale(struct products *p, const struct rule *r, const uint8_t *scale_a,
                  const uint8_t *scale_b)
{
    const int size = r->lanes == SIXTEENS ? 16 : 1, each = r->block / size;
    const int least = 2 - r->a->bias - r->b->bias - r->a->fraction_bits - r->b->fraction_bits;
    int lost = 0;
    p->count /= size;
    for (int i = 0; i < p->count; i++) {
        const struct number x = decode_scale(scale_a[i / each], r->scale);
        const struct number y = decode_scale(scale_b[i / each], r->scale);
        struct term t = p->term[i];
        if (size > 1) {
            t = (struct term){.last = least};
            for (int k = size * i; k < size * (i + 1); k++) {
                const struct term *u = &p->term[k];
                t.value = add(t.value, cut(u->value, u->last - least, MAGNITUDE, &lost));
                t.present |= u->present;
            }
        }
        t.value.size = times(times(t.value.size, x.significand), y.significand);
        t.exponent += x.exponent + y.exponent;
        t.last += x.exponent + y.exponent - 2 * r->scale->fraction_bits;
        t.present &= x.significand && y.significand;
        p->nan |= x.kind == NOT_A_NUMBER || y.kind == NOT_A_NUMBER;
        p->term[i] = t;
    }
}

static int largest(const struct products *p, int first, int step)
{
    int most = NO_TERM;
    for (int i = first; i < p->count; i += step)
        if (p->term[i].present && p->term[i].exponent > most)
            most = p->term[i].exponent;
    return most;
}

/* Add the terms, cut at one unit, and C. */
static struct sum windowed(const struct products *p, const struct number *z, const struct rule *r,
                           int *last)
{
    const int last_c = z->exponent - r->c->fraction_bits;
    const struct sum c = {z->negative && z->significand, wide(z->significand)};
    struct sum total = {0, {{0}}};
    int most = largest(p, 0, 1), unit, lost = 0;
    if (r->addend != AFTER && z->significand && z->exponent > most)
        most = z->exponent;
    if (most < r->floor)
        most = r->floor;
    unit = r->window < 0 ? LEAST : (most == NO_TERM ? 0 : most) - r->window;
    for (int i = 0; i < p->count; i++) {
        const struct term *t = &p->term[i];
        total = add(total, cut(t->value, t->last - unit, r->truncation, &lost));
    }
    *last = unit;
    if (r->addend == AFTER) { /* exactly */
        const int low = !z->significand || (length(&total.size) && unit < last_c) ? unit : last_c;
        *last = low;
        return add(cut(total, unit - low, FLOOR, &lost), cut(c, last_c - low, FLOOR, &lost));
    }
    total = add(total, cut(c, last_c - unit, r->truncation, &lost));
    if (r->truncation == FLOOR) { /* a last bit for all that was cut */
        const struct sum sticky = {0, wide((uint64_t)lost)};
        total = add(cut(total, 1, FLOOR, &lost), sticky);
        *last = unit - 1;
    }
    return total;
}

/* Add the terms and C with three cuts, as CDNA 3 does. */
static struct sum aligned(const struct products *p, const struct number *z, const struct rule *r,
                          int *last)
{
    enum { OWN = 24, COMMON = 32, TOTAL = 31 };
    const int step = r->lanes == PARITY ? 2 : 1, most = largest(p, 0, 1);
    const int common = most > z->exponent ? most : z->exponent, least = 1 - r->c->bias;
    struct sum total = {0, {{0}}}, c = {z->negative && z->significand, wide(z->significand)};
    int lost = 0, top, drop;
    for (int first = 0; first < step; first++) {
        const int own = largest(p, first, step);
        struct sum lane = {0, {{0}}};
        for (int i = first; i < p->count; i += step) {
            const struct term *t = &p->term[i];
            lane = add(lane, cut(t->value, t->last - own + OWN, MAGNITUDE, &lost));
        }
        total = add(total, step > 1 ? cut(lane, own - most, FLOOR, &lost) : lane);
    }
    total = cut(total, most - OWN - common + COMMON, FLOOR, &lost);
    if (step > 1 && z->exponent < common - OWN - 1)
        c = (struct sum){0, {{0}}};
    c = cut(c, z->exponent - r->c->fraction_bits - common + OWN, FLOOR, &lost);
    total = add(total, cut(c, COMMON - OWN, FLOOR, &lost));
    *last = common - COMMON;
    top = *last + length(&total.size) - 1;
    drop = (top < least ? least : top) - TOTAL - *last;
    if (drop > 0)
        total = cut(cut(total, -drop, FLOOR, &lost), drop, FLOOR, &lost);
    return total;
}

static uint64_t rounded(struct sum x, int last, const struct rule *r)
{
    const struct format *f = r->c;
    const uint64_t hidden = (uint64_t)1 << (f->fraction_bits + f->unused);
    const uint64_t d = packed(x.negative, x.size, last, f, r->rounding, r->bits);
    int tiny = 0;
    if (r->flush_result == BEFORE_ROUNDING)
        tiny = last + length(&x.size) - 1 < 1 - f->bias;
    if (r->flush_result == UNBOUNDED) /* twice a small number is rounded as a normal one */
        tiny = (packed(0, x.size, last + 1, f, r->rounding, r->bits)) < 2 * hidden;
    if (r->flush_result == AFTER_ROUNDING)
        tiny = (d & ~f->sign) < hidden;
    return tiny ? d & f->sign : d;
}

static uint64_t one_sum(const struct rule *r, int n, const uint64_t *a, const uint64_t *b,
                        uint64_t code, const uint8_t *scale_a, const uint8_t *scale_b)
{
    const struct format *f = r->c;
    struct number z = decode(code, f);
    struct products p;
    struct sum total;
    int last, nothing;
    uint64_t d;
    if (r->flush && leading(&z, f) < 1 - f->bias)
        z.significand = 0;
    multiply(&p, r, n, a, b);
    if (r->scale)
        scale(&p, r, scale_a, scale_b);
    total = r->addend == ALIGNED ? aligned(&p, &z, r, &last) : windowed(&p, &z, r, &last);
    d = rounded(total, last, r);
    nothing = !z.significand;
    for (int i = 0; i < p.count; i++)
        nothing &= !p.term[i].present && !length(&p.term[i].value.size);
    if (nothing)
        d = p.all_negative && z.negative && r->zero == SIGNED && f->specials != MINUS_ZERO
                ? f->sign
                : 0;
    if (r->zero == POSITIVE && d == f->sign && f->specials != MINUS_ZERO)
        d = 0;
    if (f->specials != IEEE && d == f->nan)
        d = r->nan;
    p.plus |= z.kind == INFINITE && !z.negative;
    p.minus |= z.kind == INFINITE && z.negative;
    p.nan |= z.kind == NOT_A_NUMBER || (p.plus && p.minus);
    if ((p.plus || p.minus) && (f->specials == IEEE || f->specials == NONE))
        d = f->overflow | (p.minus ? f->sign : 0);
    else
        p.nan |= p.plus || p.minus;
    return p.nan ? r->nan : d;
}

static uint64_t in_lanes(const struct rule *r, int n, const uint64_t *a, const uint64_t *b,
                         uint64_t c, const uint8_t *scale_a, const uint8_t *scale_b)
{
    uint64_t x[TERMS], y[TERMS];
    if (r->lanes != HALVES)
        return one_sum(r, n, a, b, c, scale_a, scale_b);
    for (int half = 0; half < 2; half++) {
        int count = 0;
        for (int i = 0; i < n; i++)
            if (i % 4 / 2 == half) {
                x[count] = a[i];
                y[count++] = b[i];
            }
        c = one_sum(r, count, x, y, c, scale_a, scale_b);
    }
    return c;
}

/* Return C plus the sum of n products. */
static uint64_t dot(const struct rule *r, int n, const uint64_t *a, const uint64_t *b, uint64_t c,
                    const uint8_t *scale_a, const uint8_t *scale_b)
{
    uint64_t one, total, nothing = 0;
    if (r->addend != LATE)
        return in_lanes(r, n, a, b, c, scale_a, scale_b);
    if (r->zero == SIGNED && r->c->specials != MINUS_ZERO)
        nothing = r->c->sign;
    one = (uint64_t)r->c->bias << (r->c->fraction_bits + r->c->unused);
    total = in_lanes(r, n, a, b, nothing, scale_a, scale_b);
    return dot(r->add, 1, &one, &total, c, scale_a, scale_b);
}
