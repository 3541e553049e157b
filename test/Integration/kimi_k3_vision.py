"""The eyes of Kimi K3 in numpy, one obvious step after the other, written from the description of the architecture; nothing is shared with
the compiler. `Vision(config, tensors).encode(patches, grid, dtype)` gives the embeddings of one image or of one piece of a video."""

import json
import math
import struct
import zlib

import numpy as np
from kimi_k3_model import read_tensors

erf = np.vectorize(math.erf, otypes=[np.float64])


class Vision:
    def __init__(self, config, tensors):
        self.config, self.tensors = config["vision_config"], tensors

    @classmethod
    def read(cls, folder):
        with open(f"{folder}/config.json", encoding="utf-8") as file:
            return cls(json.load(file), read_tensors(folder))

    def get(self, name):
        return self.tensors[name + ".weight"].astype(self.dtype)

    def norm(self, name, x, epsilon=np.finfo(np.float32).eps):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.dtype(epsilon)) * self.get(name)

    def encode(self, patches, grid, dtype=np.float64):
        """patches [t * h * w, 3, side, side], row after row of each frame -> [h * w / merge^2, hidden size of the text]."""
        self.dtype, (t, h, w) = dtype, grid
        c = self.config
        assert len(patches) == t * h * w
        kernel = self.get("vision_tower.patch_embed.proj")
        x = patches.reshape(len(patches), -1).astype(dtype) @ kernel.reshape(len(kernel), -1).T
        x = x + self.positions(t, h, w)
        for n in range(c["vt_num_hidden_layers"]):
            name = f"vision_tower.encoder.blocks.{n}"
            x = x + self.attention(name, self.norm(name + ".norm0", x), grid)
            y = self.norm(name + ".norm1", x) @ self.get(name + ".mlp.fc0").T
            y = y / 2 * (1 + np.tanh(self.dtype(math.sqrt(2 / math.pi)) * (y + self.dtype(0.044715) * y**3)))
            x = x + y @ self.get(name + ".mlp.fc1").T
        x = self.norm("vision_tower.encoder.final_layernorm", x)
        m, width = c["merge_kernel_size"][0], x.shape[-1]
        x = x.reshape(t, h, w, width).mean(0)
        merged = np.zeros((h // m, w // m, m * m * width), dtype)
        for dy in range(m):
            for dx in range(m):
                at = (dy * m + dx) * width
                merged[..., at:at + width] = x[dy::m, dx::m]
        y = merged.reshape(-1, m * m * width) @ self.get("mm_projector.proj.0").T
        y = (y / 2 * (1 + erf(y / math.sqrt(2)))).astype(dtype)
        y = y @ self.get("mm_projector.proj.2").T
        return self.norm("mm_projector.post_norm", y, c["projector_ln_eps"])

    def positions(self, t, h, w):
        grid = self.get("vision_tower.patch_embed.pos_emb")
        result = np.zeros((t, h, w, grid.shape[-1]), self.dtype)
        for row in range(h):
            for column in range(w):
                result[:, row, column] = self.sample(grid, (row + 0.5) * grid.shape[0] / h - 0.5, (column + 0.5) * grid.shape[1] / w - 0.5)
        if t > 1:
            half = grid.shape[-1] // 2
            angles = np.arange(t)[:, None] * 10000.0 ** (-np.arange(half) / half)
            result += np.concatenate([np.sin(angles), np.cos(angles)], -1).astype(self.dtype)[:, None, None]
        return result.reshape(t * h * w, -1)

    def sample(self, grid, y, x):
        def place(coordinate, count):
            coordinate = min(max(coordinate, 0), count - 1)
            first = int(coordinate)
            return first, min(first + 1, count - 1), self.dtype(coordinate - first)

        (y0, y1, fy), (x0, x1, fx) = place(y, grid.shape[0]), place(x, grid.shape[1])
        above = (1 - fx) * grid[y0, x0] + fx * grid[y0, x1]
        below = (1 - fx) * grid[y1, x0] + fx * grid[y1, x1]
        return (1 - fy) * above + fy * below

    def attention(self, name, x, grid):
        heads = self.config["vt_num_attention_heads"]
        q, k, v = (x @ self.get(name + ".wqkv").T).reshape(len(x), 3, heads, -1).transpose(1, 0, 2, 3)
        q, k = self.rotate(q, grid), self.rotate(k, grid)
        scores = np.einsum("qhd,khd->hqk", q, k) * self.dtype(q.shape[-1] ** -0.5)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        out = np.einsum("hqk,khd->qhd", p / p.sum(-1, keepdims=True), v)
        return out.reshape(len(x), -1) @ self.get(name + ".wo").T

    def rotate(self, x, grid):
        """Neighbouring features form pairs; even pairs turn with the column, odd ones with the row."""
        t, h, w = grid
        row, column = np.divmod(np.arange(h * w), w)
        row, column = np.tile(row, t), np.tile(column, t)
        dim = x.shape[-1]
        result = np.zeros_like(x)
        for pair in range(dim // 2):
            angle = (column if pair % 2 == 0 else row) * 10000.0 ** (-4 * (pair // 2) / dim)
            c, s = np.cos(angle).astype(self.dtype)[:, None], np.sin(angle).astype(self.dtype)[:, None]
            a, b = x[..., 2 * pair], x[..., 2 * pair + 1]
            result[..., 2 * pair], result[..., 2 * pair + 1] = a * c - b * s, a * s + b * c
        return result


def entry_inputs(patches, grid, merge, block=16):
    """The inputs of the compiled entry: patches in the order of the embeddings that they become, each with its place."""
    t, h, w = grid
    frame, row, column = (x.reshape(t, h // merge, merge, w // merge, merge) for x in np.meshgrid(range(t), range(h), range(w), indexing="ij"))

    def order(x):
        """[frames, rows, row in embedding, columns, column in embedding, ...] -> [embeddings, patches of one, frames, ...]"""
        x = np.moveaxis(x, [1, 3, 2, 4, 0], [0, 1, 2, 3, 4])
        return x.reshape(x.shape[0] * x.shape[1], merge * merge, t, *x.shape[5:])

    count = t * h * w
    frame, row, column = (order(x).astype(np.int32) for x in (frame, row, column))
    return dict(patches=np.ascontiguousarray(order(patches.reshape(t, h // merge, merge, w // merge, merge, -1)), np.float32), rows=row,
                heights=np.full_like(row, h), columns=column, widths=np.full_like(row, w), times=frame + 1 if t > 1 else np.zeros_like(row),
                keys=np.arange(count, dtype=np.int32).reshape(row.shape), last_keys=np.full_like(row, count - 1), items=np.zeros_like(row),
                block_table=np.arange(-(-count // block), dtype=np.int32)[None])


def png(pixels):
    """The bytes of a PNG file of colours [height, width, 3]."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.astype(np.uint8).tobytes() for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


def cut(pixels, side):
    """-> normalised patches [rows * columns, 3, side, side] and the grid, of an image that needs no other size."""
    height, width, _ = pixels.shape
    x = (pixels / 255 - 0.5) / 0.5
    x = x.reshape(height // side, side, width // side, side, 3).transpose(0, 2, 4, 1, 3)
    return x.reshape(-1, 3, side, side), (1, height // side, width // side)
