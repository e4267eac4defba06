// Fixed part of the batch driver; included by the generated part, which knows the ports.

namespace {

struct Instance {
    VerilatedContext context;
    Vmodel model{&context, "top"};
};

void edge(Vmodel& m) {
#if HAS_CLOCK
    m.clk = 1;
    m.eval();
    m.clk = 0;
#else
    (void)m;
#endif
}

void reset(Vmodel& m) {
#if HAS_CLOCK
    m.clk = 0;
#endif
#if HAS_RESET
    m.rst = 1;
    m.eval();
    for (int n = 0; n < 2; n++) {
        edge(m);
        m.eval();
    }
    m.rst = 0;
#endif
    m.eval();
}

struct Random {
    uint64_t state;
    uint64_t next() {  // splitmix64
        uint64_t z = state += 0x9E3779B97F4A7C15ull;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ z >> 27) * 0x94D049BB133111EBull;
        return z ^ z >> 31;
    }
};

// Random stalls: single cycles at the given rate, now and then a long one that fills every buffer.
struct Stall {
    Random random{0};
    uint64_t threshold = 0;
    uint64_t left = 0;
    bool next() {
        if (left) {
            left--;
            return true;
        }
        const uint64_t r = random.next();
        if (!threshold || (r >> 32) >= threshold) return false;
        if ((r & 31) == 0) left = r >> 8 & 31;
        return true;
    }
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void* vitruvian_new() {
    auto instance = std::make_unique<Instance>();
    reset(instance->model);
    return instance.release();
}

EXPORT void vitruvian_delete(void* handle) { delete static_cast<Instance*>(handle); }

// One vector a clock; output i is read LATENCY rising edges after input i was applied.
EXPORT void vitruvian_run(void* handle, uint64_t count, const void* const* in, void* const* out) {
    Vmodel& m = static_cast<Instance*>(handle)->model;
    reset(m);
    if (LATENCY == 0) {
        for (uint64_t i = 0; i < count; i++) {
            put_all(m, in, i);
            m.eval();
            get_all(m, out, i);
            edge(m);
        }
        return;
    }
    for (uint64_t i = 0; i < count + LATENCY - 1; i++) {
        if (i < count) put_all(m, in, i);
        edge(m);
        if (i >= LATENCY - 1) get_all(m, out, i - (LATENCY - 1));
        m.eval();
    }
}

struct Job {
    uint64_t seed;
    uint64_t quiet_limit;               // cycles without a transfer that count as a hang
    uint64_t drain;                     // cycles to watch for surplus beats at the end
    uint64_t reset_at;                  // cycle of a reset, after which all is sent again; ~0: none
    const void* const* held;            // plain inputs, constant over the job
    void* const* plain;                 // plain outputs at the end
    const uint64_t* input_items;        // per input stream
    const void* const* input_arrays;    // per leaf
    uint64_t* const* input_cycles;      // per stream: cycle of each transfer
    uint64_t* input_done;               // per stream
    const uint64_t* input_stall;        // per stream: rate in 2**32nds
    const uint64_t* output_items;
    void* const* output_arrays;
    uint64_t* const* output_cycles;
    uint64_t* output_done;              // may exceed output_items: surplus beats
    const uint64_t* output_stall;
    uint64_t cycles;                    // result
};

// Returns 0 when every item went in and every expected item came out, 1 on a hang.
EXPORT int vitruvian_stream(void* handle, Job* job) {
    Vmodel& m = static_cast<Instance*>(handle)->model;
    Stall input_stall[input_count + 1], output_stall[output_count + 1];
    bool offered[input_count + 1] = {};
    bool accepting[output_count + 1] = {};
    Random noise{job->seed ^ 0x5DEECE66Dull};
    for (int s = 0; s < input_count; s++) {
        input_stall[s].random.state = job->seed * 1000003 + s;
        input_stall[s].threshold = input_forced[s] ? 0 : job->input_stall[s];
        job->input_done[s] = 0;
    }
    for (int s = 0; s < output_count; s++) {
        output_stall[s].random.state = job->seed * 1000003 + 4096 + s;
        output_stall[s].threshold = output_forced[s] ? 0 : job->output_stall[s];
        job->output_done[s] = 0;
    }
    put_all(m, job->held, 0);
    for (int s = 0; s < input_count; s++) input_drive(s, m, false);
    for (int s = 0; s < output_count; s++) output_drive(s, m, false);
    reset(m);
    uint64_t quiet = 0, after = 0;
    for (job->cycles = 0;; job->cycles++) {
        if (job->cycles == job->reset_at) {
            for (int s = 0; s < input_count; s++) {
                offered[s] = false;
                job->input_done[s] = 0;
                input_drive(s, m, false);
            }
            for (int s = 0; s < output_count; s++) {
                job->output_done[s] = 0;
                output_drive(s, m, false);
            }
            reset(m);
        }
        for (int s = 0; s < input_count; s++) {
            const uint64_t done = job->input_done[s], items = job->input_items[s];
            if (!offered[s]) {
                offered[s] = done < items && !input_stall[s].next();
                // without an offer the payload shows some other item, so reading it is found out
                if (items)
                    input_payload(s, m, job->input_arrays + input_leaves[s],
                                  offered[s] ? done : noise.next() % items);
            }
            input_drive(s, m, offered[s]);
        }
        for (int s = 0; s < output_count; s++) {
            accepting[s] = output_forced[s] || !output_stall[s].next();
            output_drive(s, m, accepting[s]);
        }
        m.eval();
        bool moved = false, finished = true;
        for (int s = 0; s < input_count; s++) {
            if (offered[s] && input_sample(s, m)) {
                job->input_cycles[s][job->input_done[s]++] = job->cycles;
                offered[s] = false;
                moved = true;
            }
            finished &= job->input_done[s] >= job->input_items[s];
        }
        for (int s = 0; s < output_count; s++) {
            if (accepting[s] && output_sample(s, m)) {
                const uint64_t n = job->output_done[s]++;
                if (n < job->output_items[s]) {
                    output_payload(s, m, job->output_arrays + output_leaves[s], n);
                    job->output_cycles[s][n] = job->cycles;
                }
                moved = true;
            }
            finished &= job->output_done[s] >= job->output_items[s];
        }
        get_all(m, job->plain, 0);
        edge(m);
        if (finished && after++ >= job->drain) break;
        if (moved) quiet = 0;
        else if (!finished && ++quiet >= job->quiet_limit) return 1;
    }
    return 0;
}
