"""The table of BERT-base, for one text of 128 tokens.

References
----------
Devlin et al. 2019 (BERT-base: 12 layers, 768 features, 12 heads, 3072 features inside).
"""

from vitruvian.sim.networks.layers import (
    Elementwise,
    Layer,
    LayerNorm,
    MatMul,
    Network,
    Softmax,
)


def bert_base(tokens: int = 128) -> Network:
    """Return BERT-base; the look-up of the embeddings is left out."""
    features, heads, inside = 768, 12, 3072
    layers: list[Layer] = [LayerNorm(name="embedding norm", rows=tokens, features=features)]
    for number in range(12):
        layers += _encoder(f"layer {number} ", tokens, features, heads, inside)
    layers.append(MatMul(name="pooler", m=1, k=features, n=features))
    layers.append(Elementwise(name="pooler tanh", operation="tanh", elements=features))
    return Network("bert_base", f"BERT-base, {tokens} tokens", tuple(layers))


def _encoder(prefix: str, tokens: int, features: int, heads: int, inside: int) -> list[Layer]:
    depth, square = features // heads, tokens * tokens
    return [
        MatMul(name=prefix + "q, k, v", m=tokens, k=features, n=features, times=3),
        MatMul(name=prefix + "scores", m=tokens, k=depth, n=tokens, times=heads),
        Elementwise(name=prefix + "scale", operation="scale", elements=heads * square),
        Softmax(name=prefix + "softmax", rows=heads * tokens, classes=tokens),
        MatMul(name=prefix + "context", m=tokens, k=tokens, n=depth, times=heads),
        MatMul(name=prefix + "output", m=tokens, k=features, n=features),
        Elementwise(name=prefix + "add", operation="add", elements=tokens * features),
        LayerNorm(name=prefix + "norm", rows=tokens, features=features),
        MatMul(name=prefix + "inside", m=tokens, k=features, n=inside),
        Elementwise(name=prefix + "gelu", operation="gelu", elements=tokens * inside),
        MatMul(name=prefix + "outside", m=tokens, k=inside, n=features),
        Elementwise(name=prefix + "add again", operation="add", elements=tokens * features),
        LayerNorm(name=prefix + "norm again", rows=tokens, features=features),
    ]
