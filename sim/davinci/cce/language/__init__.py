"""The lexical level of CCE C: tokens, keywords, types, source files and the preprocessor."""
