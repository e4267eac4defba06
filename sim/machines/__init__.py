"""The rules of ``golden.machines`` as compiled RTL, and measured sets that both must reproduce."""
