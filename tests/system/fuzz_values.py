"""Values of options and arguments for ``tests.system.fuzz_lines``, good and hostile ones."""

__all__ = ["BAD_TEXT", "FOLDERS", "NUMBERS", "OUTPUTS", "inputs"]

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
