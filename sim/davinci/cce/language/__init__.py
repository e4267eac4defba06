"""CCE C up to its tokens: characters, keywords, types, the preprocessor."""
