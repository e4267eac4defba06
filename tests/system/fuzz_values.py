"""Values of options and arguments for ``tests.system.fuzz_lines``, good and hostile ones."""

BAD_TEXT = (
    *("", " ", "-1", "0", "-0", "1e9", "1e999", "nan", "inf", "9" * 40, "9" * 5000),
    *("999999999999", "0x10", "½", "٣", "é", "💥", "a\nb", "../..", "/", "%s%n", "{}", "None"),
    *("[1]", "1,,2", "8-4", "1x1x1", "0x0x0", "100000x100000x100000", "1x", "x", ",", "*"),
    *("999999999x999999999x999999999", "2**99", "fp16", "zzz", "apsp", "a" * 300, "\udcff"),
    *("$(id)", "1_000", "+5", "1.5", "true"),
)
NUMBERS = ("1", "2", "3", "7")


def inputs(*good: str) -> tuple[str, ...]:
    """Return the names of input files, good ones first."""
    bad = "junk.bin empty utf16.txt nul.txt picture.png folder.json deep.json loop.mtx missing.x"
    return (*(f"IN/{name}" for name in (*good, *bad.split())), "IN/new\nline.txt", "/dev/null")


FOLDERS = ("new", "new/folder", "IN/junk.bin", "IN/good.json/x", "/proc/no", "", ".", "-", "é")
OUTPUTS = (
    *(
        "out.json",
        "new/folder/out.json",
        "out.json.gz",
        "out.svg",
        "out.png",
        "out.npz",
        "é💥.json",
    ),
    *("out.bmp", "out", "IN/good.json/x.json", "IN/folder.json", "/proc/no/out.json", "/dev/full"),
    *("", ".", "n" * 300 + ".json", "/dev/null/out.svg", "-", "IN/junk.bin/x.npz"),
)
POOLINGS = tuple(
    f"{kind}-{method}"
    for kind in ("maxpool", "maxpool-argmax", "maxpool-backward", "avgpool", "avgpool-backward")
    for method in ("im2col", "direct", "expansion", "xy")
)
POOLING_SIZES = (
    *("1x1x8x3x2", "2x1x11x3x2", "0x1x8x3x2", "1x1x8x9x2", "1x1x8x3x0", "1x1x8x8x9999"),
    *("1x1x8x-3x2", "1x1x8x3", "999999999x1x8x3x2", "1x999999999x8x3x2", "1x1x999999999x3x2"),
    *("1x1x999999999x999999999x1", "1x1x300x299x1", "64x32x224x3x2", "1x1x4096x2x2", "1x1x1x1x1"),
)
CONVOLUTIONS = (
    *("1x16x8x16x3x1", "1x1x1x1x1x1", "0x16x8x16x3x1", "1x16x8x16x9x1", "1x16x8x16x3x99"),
    *("999999999x1x8x1x3x1", "1x999999999x8x16x3x1", "1x16x999999999x16x3x1", "1x16x8x16x3"),
    *("64x512x224x512x3x1", "1x3x300x4x255x1", "1x1x8x99999x1x1"),
)
COUNTER_FILES = inputs(
    *(f"{n}.counters.csv" for n in "counters nocolumn norow nonumber negative inf ceiling".split()),
    *(f"{n}.counters.csv" for n in "late zero tiny huge unit twice quote long nul cells".split()),
    *("msprof", "msprof_core", "msprof_text", "msprof_more", "msprof_time", "msprof_none"),
    *("msprof_over", "msprof_head", "msprof_id", "msprof_short", "msprof_few", "points.csv"),
)
PROBES = (
    *("probe.bin", "short.probe.bin", "old.probe.bin", "changed.probe.bin", "probe.npz"),
    *(f"{name}.probe.npz" for name in ("terms", "rows", "scalar", "bomb")),
)
UNITS = {
    "--format": ("fp8e4m3", "fp8e5m2", "int99"),
    "--pipeline": ("0", "1", "9", "8-4"),
    "--rounding": ("RNE", "RTZ", "up"),
    "--preset": ("a100", "tiny", "z9"),
    "--rule": ("rvbna_e4m3_n1_fp32", "amx_tdpbssd", "cdna1_mfma_bf16_fp32", "z9"),
    "--k": ("1", "8-4", "65"),
    "--width": ("8", "0", "999999999"),
    "--json": OUTPUTS,
}
