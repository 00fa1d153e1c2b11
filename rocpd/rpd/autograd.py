"""`python -m rocpd.rpd.autograd`: kernels by operator of PyTorch; RPD's tool wrote that into the trace."""

from __future__ import annotations

if __name__ == "__main__":
    from rocpd.rpd.answers import answer

    answer("select * from autogradKernel")
