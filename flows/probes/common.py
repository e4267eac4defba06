"""The part of the programs that reads the operands and writes the results, in C and C++."""

from vitruvian.golden.machines.probe import KIT_VERSION

COMMON = f"""\
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIT_VERSION {KIT_VERSION}

/* One instruction with its operands; see README.md. All machines here are little-endian. */
typedef struct {{
  char name[64], input[32], input_b[32], output[32], scale[32];
  uint32_t status, rows, terms, scales, size_a, size_b, size_c, unused;
  uint64_t offset;
  char padding[24];
}} Section;

typedef struct {{
  uint8_t *a, *b, *c, *scale_a, *scale_b, *d;
}} Operands;

static uint8_t *file_data;
static size_t file_size;

static void fail(const char *text) {{
  fprintf(stderr, "error: %s\\n", text);
  exit(2);
}}

static void read_inputs(const char *path) {{
  FILE *file = fopen(path, "rb");
  if (!file) fail("inputs.bin must be in this folder, or be named first");
  fseek(file, 0, SEEK_END);
  file_size = (size_t)ftell(file);
  rewind(file);
  file_data = (uint8_t *)malloc(file_size + 1);
  if (!file_data || fread(file_data, 1, file_size, file) != file_size) fail("inputs are not whole");
  fclose(file);
  uint32_t version;
  uint64_t length;
  if (file_size < 128 || memcmp(file_data, "VTPROBE", 8)) fail("inputs must be of the probe kit");
  memcpy(&version, file_data + 8, 4);
  memcpy(&length, file_data + 24, 8);
  if (version != KIT_VERSION) fail("inputs must be of the version of this program");
  if (length != file_size) fail("inputs must be whole, but they are truncated");
}}

static uint32_t section_count(void) {{
  uint32_t count;
  memcpy(&count, file_data + 12, 4);
  return count;
}}

static Section *section_at(uint32_t index) {{
  return (Section *)(file_data + 128 + 256 * (size_t)index);
}}

static Operands operands_of(const Section *s) {{
  Operands x;
  size_t rows = s->rows, terms = s->terms;
  x.a = file_data + s->offset;
  x.b = x.a + rows * terms * s->size_a;
  x.c = x.b + rows * terms * s->size_b;
  x.scale_a = x.c + rows * s->size_c;
  x.scale_b = x.scale_a + rows * s->scales;
  x.d = x.scale_b + rows * s->scales;
  return x;
}}

static void set_device(const char *text) {{
  memset(file_data + 64, 0, 64);
  strncpy((char *)file_data + 64, text, 63);
}}

static void write_outputs(const char *path) {{
  char temporary[4096];
  if (snprintf(temporary, sizeof temporary, "%s.part", path) >= (int)sizeof temporary)
    fail("the name of the outputs is too long");
  FILE *file = fopen(temporary, "wb");
  if (!file || fwrite(file_data, 1, file_size, file) != file_size || fclose(file))
    fail("the outputs cannot be written");
  if (rename(temporary, path)) fail("the outputs cannot be renamed");
}}
"""

#: The function main; ``start`` and ``run_section`` are the target's.
MAIN = """\
int main(int count, char **arguments) {
  read_inputs(count > 1 ? arguments[1] : "inputs.bin");
  start();
  uint32_t done = 0;
  for (uint32_t i = 0; i < section_count(); i++) {
    Section *section = section_at(i);
    const char *reason = run_section(section);
    section->status = reason == NULL;
    done += reason == NULL;
    printf("%-40s %s\\n", section->name, reason ? reason : "done");
  }
  if (!done) fail("no instruction could be run on this device");
  write_outputs(count > 2 ? arguments[2] : "outputs.bin");
  printf("%u of %u instructions\\n", done, section_count());
  return 0;
}
"""
