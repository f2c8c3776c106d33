#!/usr/bin/env python3
# Counts the parameters of a model from its config.json, tensor by tensor: the modules of each architecture's public
# modelling code (transformers/models/*/modeling_*.py, or the code beside the weights) as a list of shapes. It shares
# nothing with Plumbline, and knows no layer, cost or op. Buffers get no gradient and are no parameters: biases that
# only correct the choice of experts, tables of hash routing, frequencies.
#
#   count.py FILE...   prints "FILE PARAMETERS" for each; of a file with images or sound, those of its text
#
# SPDX-License-Identifier: MIT
import json
import math
import sys


class Tensors:
    """Shapes by name; the sum of their products is the number of parameters."""

    def __init__(self):
        self.shapes = []

    def add(self, name, *shape):
        assert all(isinstance(n, int) and n >= 0 for n in shape), (name, shape)
        self.shapes.append((name, shape))

    def linear(self, name, inputs, outputs, bias=False):
        self.add(name + ".weight", outputs, inputs)
        if bias:
            self.add(name + ".bias", outputs)

    def count(self):
        return sum(math.prod(shape) for _, shape in self.shapes)


def get(config, key, default):
    value = config.get(key)
    return default if value is None else value


def attention(t, name, h, heads, groups, dim, value_dim=None, qkv_bias=False, out_bias=False, qk=None, gate=0, sinks=False,
              has_v=True):
    value_dim = value_dim or dim
    t.linear(name + ".q_proj", h, heads * dim, qkv_bias)
    t.linear(name + ".k_proj", h, groups * dim, qkv_bias)
    if has_v:
        t.linear(name + ".v_proj", h, groups * value_dim, qkv_bias)
    t.linear(name + ".o_proj", heads * value_dim, h, out_bias)
    if qk == "head":
        t.add(name + ".q_norm", dim)
        t.add(name + ".k_norm", dim)
    if qk == "all":
        t.add(name + ".q_norm", heads * dim)
        t.add(name + ".k_norm", groups * dim)
    if gate:
        t.linear(name + ".gate", h, gate)
    if sinks:
        t.add(name + ".sinks", heads)


def latent(t, name, c, gate=False):
    h, heads = c["hidden_size"], c["num_attention_heads"]
    nope, rope, value, rank = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"], c["kv_lora_rank"]
    bias = get(c, "attention_bias", False)
    if c.get("q_lora_rank"):
        t.linear(name + ".q_a_proj", h, c["q_lora_rank"], bias)
        t.add(name + ".q_a_layernorm", c["q_lora_rank"])
        t.linear(name + ".q_b_proj", c["q_lora_rank"], heads * (nope + rope))
    else:
        t.linear(name + ".q_proj", h, heads * (nope + rope))
    t.linear(name + ".kv_a_proj_with_mqa", h, rank + rope, bias)
    t.add(name + ".kv_a_layernorm", rank)
    t.linear(name + ".kv_b_proj", rank, heads * (nope + value))
    t.linear(name + ".o_proj", heads * value, h, bias)
    if gate:
        t.linear(name + ".g_proj", h, heads * value)


def mlp(t, name, h, inner, gated=True, bias=False):
    if gated:
        t.linear(name + ".gate_proj", h, inner, bias)
    t.linear(name + ".up_proj", h, inner, bias)
    t.linear(name + ".down_proj", inner, h, bias)


def experts(t, name, h, count, inner, width=None, gated=True, router=True):
    width = width or h
    if router:
        t.add(name + ".gate.weight", count, h)
    if gated:
        t.add(name + ".experts.gate_proj", count, inner, width)
    t.add(name + ".experts.up_proj", count, inner, width)
    t.add(name + ".experts.down_proj", count, width, inner)


def ends(t, c, tied, h=None):
    h = h or c["hidden_size"]
    t.add("embed_tokens", c["vocab_size"], h)
    t.add("norm", h)
    if not get(c, "tie_word_embeddings", tied):
        t.add("lm_head", c["vocab_size"], h)


def norms(t, name, h, count):
    for i in range(count):
        t.add(f"{name}.norm_{i}", h)


def dims(c, groups=None, dim=None):
    heads = c["num_attention_heads"]
    return c["hidden_size"], heads, get(c, "num_key_value_heads", groups or heads), get(c, "head_dim", dim or c["hidden_size"] // heads)


def dense_decoder(t, c, tied=False, groups=None, dim=None, qkv_bias=False, out_bias=False, mlp_bias=False, qk=None, layer_norms=2,
                  gated=True):
    h, heads, groups, dim = dims(c, groups, dim)
    ends(t, c, tied)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, layer_norms)
        attention(t, n + ".self_attn", h, heads, groups, dim, qkv_bias=qkv_bias, out_bias=out_bias, qk=qk)
        mlp(t, n + ".mlp", h, c["intermediate_size"], gated, mlp_bias)


def llama(t, c):
    bias = get(c, "attention_bias", False)
    dense_decoder(t, c, qkv_bias=bias, out_bias=bias, mlp_bias=get(c, "mlp_bias", False))


def qwen3(t, c):
    bias = get(c, "attention_bias", False)
    dense_decoder(t, c, groups=32, dim=128, qkv_bias=bias, out_bias=bias, qk="head")


def qwen3_moe(t, c):
    h, heads, groups, dim = dims(c, 4)
    bias = get(c, "attention_bias", False)
    ends(t, c, False)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 2)
        attention(t, n, h, heads, groups, dim, qkv_bias=bias, out_bias=bias, qk="head")
        if i not in get(c, "mlp_only_layers", []) and (i + 1) % get(c, "decoder_sparse_step", 1) == 0:
            experts(t, n, h, c["num_experts"], c["moe_intermediate_size"])
        else:
            mlp(t, n, h, c["intermediate_size"])


def mixtral(t, c):
    h, heads, groups, dim = dims(c, 8)
    ends(t, c, False)
    for i in range(c["num_hidden_layers"]):
        norms(t, f"layers.{i}", h, 2)
        attention(t, f"layers.{i}", h, heads, groups, dim)
        experts(t, f"layers.{i}", h, c["num_local_experts"], c["intermediate_size"])


def deepseek(t, c):
    h = c["hidden_size"]
    ends(t, c, False)
    has_index = "index_n_heads" in c
    kinds = c.get("indexer_types")
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 2)
        latent(t, n + ".self_attn", c)
        if has_index and (kinds is None or kinds[i] == "full"):
            size, heads = c["index_head_dim"], c["index_n_heads"]
            t.linear(n + ".indexer.wq_b", c["q_lora_rank"], heads * size)
            t.linear(n + ".indexer.wk", h, size)
            t.add(n + ".indexer.k_norm.weight", size)
            t.add(n + ".indexer.k_norm.bias", size)
            t.linear(n + ".indexer.weights_proj", h, heads)
        if i < c["first_k_dense_replace"]:
            mlp(t, n + ".mlp", h, c["intermediate_size"])
        else:
            experts(t, n + ".mlp", h, c["n_routed_experts"], c["moe_intermediate_size"])
            mlp(t, n + ".mlp.shared_experts", h, c["n_shared_experts"] * c["moe_intermediate_size"])


def deepseek_v4(t, c):
    h, heads, dim, rank = c["hidden_size"], c["num_attention_heads"], c["head_dim"], c["q_lora_rank"]
    streams, groups, inner = get(c, "hc_mult", 4), c["o_groups"], c["o_lora_rank"]
    ends(t, c, False)
    t.add("hc_head.fn", streams, streams * h)
    t.add("hc_head.base", streams)
    t.add("hc_head.scale", 1)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 2)
        for site in ("attn_hc", "ffn_hc"):
            mix = (2 + streams) * streams
            t.add(f"{n}.{site}.fn", mix, streams * h)
            t.add(f"{n}.{site}.base", mix)
            t.add(f"{n}.{site}.scale", 3)
        t.linear(n + ".q_a_proj", h, rank)
        t.add(n + ".q_norm", rank)
        t.linear(n + ".q_b_proj", rank, heads * dim)
        t.linear(n + ".kv_proj", h, dim)
        t.add(n + ".kv_norm", dim)
        t.linear(n + ".o_a_proj", heads * dim // groups, groups * inner)
        t.linear(n + ".o_b_proj", groups * inner, h)
        t.add(n + ".sinks", heads)
        ratio = c["compress_ratios"][i]
        if ratio:
            both = 2 if ratio == 4 else 1
            t.linear(n + ".compressor.kv_proj", h, both * dim)
            t.linear(n + ".compressor.gate_proj", h, both * dim)
            t.add(n + ".compressor.position_bias", ratio, both * dim)
            t.add(n + ".compressor.kv_norm", dim)
        if ratio == 4:
            size = c["index_head_dim"]
            t.linear(n + ".indexer.kv_proj", h, 2 * size)
            t.linear(n + ".indexer.gate_proj", h, 2 * size)
            t.add(n + ".indexer.position_bias", ratio, 2 * size)
            t.add(n + ".indexer.kv_norm", size)
            t.linear(n + ".indexer.q_b_proj", rank, c["index_n_heads"] * size)
            t.linear(n + ".indexer.weights_proj", h, c["index_n_heads"])
        experts(t, n, h, c["n_routed_experts"], c["moe_intermediate_size"])
        mlp(t, n + ".shared_experts", h, c["moe_intermediate_size"])


def gpt_oss(t, c):
    h, heads, groups, dim = dims(c)
    count, inner = c["num_local_experts"], c["intermediate_size"]
    ends(t, c, False)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 2)
        attention(t, n, h, heads, groups, dim, qkv_bias=True, out_bias=True, sinks=True)
        t.linear(n + ".router", h, count, True)
        t.add(n + ".gate_up_proj", count, h, 2 * inner)
        t.add(n + ".gate_up_proj_bias", count, 2 * inner)
        t.add(n + ".down_proj", count, inner, h)
        t.add(n + ".down_proj_bias", count, h)


def llama4(t, c):
    h, heads, groups, dim = dims(c)
    ends(t, c, False)
    step = get(c, "interleave_moe_layer_step", 1)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 2)
        attention(t, n, h, heads, groups, dim)
        if (i + 1) % step == 0:
            experts(t, n, h, c["num_local_experts"], c["intermediate_size"])
            mlp(t, n + ".shared_expert", h, c["intermediate_size"])
        else:
            mlp(t, n, h, c["intermediate_size_mlp"])


def gemma(t, c):
    dense_decoder(t, c, tied=True, dim=256)


def gemma2(t, c):
    dense_decoder(t, c, tied=True, groups=4, dim=256, layer_norms=4)


def gemma3(t, c):
    c = {"num_attention_heads": 8, "vocab_size": 262208, **c}
    dense_decoder(t, c, tied=True, groups=4, dim=256, layer_norms=4, qk="head")


def gemma4(t, c):
    h, heads = c["hidden_size"], c["num_attention_heads"]
    ends(t, c, True)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 4)
        full = c["layer_types"][i] == "full_attention"
        same = full and get(c, "attention_k_eq_v", False)
        groups = c["num_global_key_value_heads"] if same else c["num_key_value_heads"]
        attention(t, n, h, heads, groups, c["global_head_dim"] if full else c["head_dim"], qk="head", has_v=not same)
        mlp(t, n, h, c["intermediate_size"])
        if get(c, "enable_moe_block", False):
            experts(t, n, h, c["num_experts"], c["moe_intermediate_size"])
            t.add(n + ".router.scale", h)
            t.add(n + ".router.per_expert_scale", c["num_experts"])
            norms(t, n + ".moe", h, 3)


def glm(t, c):
    dense_decoder(t, c, groups=2, dim=128, qkv_bias=get(c, "attention_bias", True))


def glm4(t, c):
    dense_decoder(t, c, groups=2, dim=128, qkv_bias=get(c, "attention_bias", True), layer_norms=4)


def glm4_moe(t, c):
    h, heads, groups, dim = dims(c, 8, 128)
    ends(t, c, False)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 2)
        attention(t, n, h, heads, groups, dim, qkv_bias=get(c, "attention_bias", False), qk="head" if get(c, "use_qk_norm", False) else None)
        if i < c["first_k_dense_replace"]:
            mlp(t, n, h, c["intermediate_size"])
        else:
            experts(t, n, h, c["n_routed_experts"], c["moe_intermediate_size"])
            mlp(t, n + ".shared", h, c["n_shared_experts"] * c["moe_intermediate_size"])


def minimax_m2(t, c):
    h, heads, groups, dim = dims(c)
    ends(t, c, False)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 2)
        attention(t, n, h, heads, groups, dim, qk="all")
        experts(t, n, h, c["num_local_experts"], c["intermediate_size"])


def minimax_m3(t, c):
    h, heads, groups, dim = dims(c)
    own = c["sparse_attention_config"]
    ends(t, c, False)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 2)
        attention(t, n, h, heads, groups, dim, qk="head")
        if own["sparse_attention_freq"][i]:
            size = own["sparse_index_dim"]
            t.linear(n + ".index_q_proj", h, own["sparse_num_index_heads"] * size)
            t.linear(n + ".index_k_proj", h, size)
            norms(t, n + ".index", size, 2)
        if c["moe_layer_freq"][i]:
            experts(t, n, h, c["num_local_experts"], c["intermediate_size"])
            mlp(t, n + ".shared", h, c["shared_intermediate_size"])
        else:
            mlp(t, n, h, c["dense_intermediate_size"])


def mimo(t, c):
    dense_decoder(t, c, groups=8, qkv_bias=True)


def mimo_v2_flash(t, c):
    h = c["hidden_size"]
    ends(t, c, False)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 2)
        window = c["hybrid_layer_pattern"][i] == 1
        pre = "swa_" if window else ""
        attention(t, n, h, c[pre + "num_attention_heads"], c[pre + "num_key_value_heads"], c[pre + "head_dim"], c[pre + "v_head_dim"],
                  sinks=c["add_swa_attention_sink_bias"] if window else c["add_full_attention_sink_bias"])
        if c["moe_layer_freq"][i]:
            experts(t, n, h, c["n_routed_experts"], c["moe_intermediate_size"])
        else:
            mlp(t, n, h, c["intermediate_size"])


def kimi_linear(t, c):
    h, own = c["hidden_size"], c["linear_attn_config"]
    heads, size, width = own["num_heads"], own["head_dim"], own["short_conv_kernel_size"]
    over_blocks = c.get("attn_res_block_size")
    ends(t, c, False)
    if over_blocks:
        norms(t, "output_attn_res", h, 2)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 2 + (4 if over_blocks else 0))
        if i + 1 in own["kda_layers"]:
            for one in "qkv":
                t.linear(f"{n}.{one}_proj", h, heads * size)
                t.add(f"{n}.{one}_conv1d", heads * size, 1, width)
            t.linear(n + ".f_a_proj", h, size)
            t.linear(n + ".f_b_proj", size, heads * size)
            t.linear(n + ".b_proj", h, heads)
            if own.get("use_full_rank_gate"):
                t.linear(n + ".g_proj", h, heads * size)
            else:
                t.linear(n + ".g_a_proj", h, size)
                t.linear(n + ".g_b_proj", size, heads * size)
            # The weights of Kimi K3 have one for each number of a head, those of Kimi Linear one for each head.
            t.add(n + ".A_log", size if "gate_lower_bound" in own else heads)
            t.add(n + ".dt_bias", heads * size)
            t.add(n + ".o_norm", size)
            t.linear(n + ".o_proj", heads * size, h)
        else:
            latent(t, n, c, get(c, "mla_use_output_gate", False))
        if i < c["first_k_dense_replace"]:
            mlp(t, n, h, c["intermediate_size"])
            continue
        narrow = c.get("routed_expert_hidden_size")
        experts(t, n, h, c["num_experts"], c["moe_intermediate_size"], narrow)
        if narrow:
            t.linear(n + ".routed_expert_down_proj", h, narrow)
            t.linear(n + ".routed_expert_up_proj", narrow, h)
            if c.get("latent_moe_use_norm"):
                t.add(n + ".routed_expert_norm", narrow)
        if c["num_shared_experts"]:
            mlp(t, n + ".shared", h, c["num_shared_experts"] * c["moe_intermediate_size"])


def qwen2_moe(t, c):
    h, heads, groups, dim = dims(c)
    ends(t, c, False)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 2)
        attention(t, n, h, heads, groups, dim, qkv_bias=True)
        experts(t, n, h, c["num_experts"], c["moe_intermediate_size"])
        mlp(t, n + ".shared", h, c["shared_expert_intermediate_size"])
        t.linear(n + ".shared_gate", h, 1)


def qwen3_next(t, c):
    h, heads, groups, dim = dims(c, 2, 256)
    keys = c["linear_num_key_heads"] * c["linear_key_head_dim"]
    value_heads, value_dim = c["linear_num_value_heads"], c["linear_value_head_dim"]
    values = value_heads * value_dim
    ends(t, c, False)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 2)
        if "layer_types" in c:
            full = c["layer_types"][i] == "full_attention"
        else:
            full = (i + 1) % get(c, "full_attention_interval", 4) == 0
        if full:
            attention(t, n, h, heads, groups, dim, qk="head", gate=heads * dim)
        else:
            t.linear(n + ".in_proj_qkvz", h, 2 * keys + 2 * values)
            t.linear(n + ".in_proj_ba", h, 2 * value_heads)
            t.add(n + ".conv1d", 2 * keys + values, 1, get(c, "linear_conv_kernel_dim", 4))
            t.add(n + ".dt_bias", value_heads)
            t.add(n + ".A_log", value_heads)
            t.add(n + ".norm", value_dim)
            t.linear(n + ".out_proj", values, h)
        if "num_experts" in c:
            experts(t, n, h, c["num_experts"], c["moe_intermediate_size"])
            mlp(t, n + ".shared", h, c["shared_expert_intermediate_size"])
            t.linear(n + ".shared_gate", h, 1)
        else:
            mlp(t, n, h, c["intermediate_size"])


def nemotron_nas(t, c):
    h, heads = c["hidden_size"], c["num_attention_heads"]
    ends(t, c, False)
    for i, block in enumerate(c["block_configs"]):
        n = f"layers.{i}"
        if not block["attention"].get("no_op"):
            norms(t, n + ".attention", h, 1)
            if block["attention"].get("replace_with_linear"):
                t.linear(n + ".linear_attn", h, h)
            else:
                attention(t, n, h, heads, heads // block["attention"]["n_heads_in_group"], h // heads)
        if not block["ffn"].get("no_op"):
            norms(t, n + ".ffn", h, 1)
            inner = int(2 * block["ffn"]["ffn_mult"] * h / 3)
            mlp(t, n, h, inner if inner % 256 == 0 else inner + 256 - inner % 256)


def nemotron_h(t, c):
    h, heads = c["hidden_size"], c["num_attention_heads"]
    words = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}
    blocks = c.get("layers_block_type") or [words[one] for one in c["hybrid_override_pattern"]]
    inner = c["mamba_num_heads"] * c["mamba_head_dim"]
    channels = inner + 2 * c["n_groups"] * c["ssm_state_size"]
    ends(t, c, False)
    for i, kind in enumerate(blocks):
        n = f"layers.{i}"
        norms(t, n, h, 1)
        if kind == "mamba":
            t.linear(n + ".in_proj", h, inner + channels + c["mamba_num_heads"], get(c, "use_bias", False))
            t.add(n + ".conv1d.weight", channels, 1, c["conv_kernel"])
            if get(c, "use_conv_bias", True):
                t.add(n + ".conv1d.bias", channels)
            for one in ("dt_bias", "A_log", "D"):
                t.add(f"{n}.{one}", c["mamba_num_heads"])
            t.add(n + ".norm", inner)
            t.linear(n + ".out_proj", inner, h, get(c, "use_bias", False))
        elif kind == "attention":
            attention(t, n, h, heads, c["num_key_value_heads"], c.get("head_dim") or c["attention_head_dim"])
        elif kind == "mlp":
            mlp(t, n, h, c["intermediate_size"], gated=False)
        else:
            narrow = c.get("moe_latent_size")
            experts(t, n, h, c["n_routed_experts"], c["moe_intermediate_size"], narrow, gated=False)
            mlp(t, n + ".shared", h, c["moe_shared_expert_intermediate_size"], gated=False)
            if narrow:
                t.linear(n + ".fc1_latent_proj", h, narrow)
                t.linear(n + ".fc2_latent_proj", narrow, h)


def phi3(t, c):
    dense_decoder(t, c)


def olmo2(t, c):
    dense_decoder(t, c, qk="all")


def olmoe(t, c):
    h, heads, groups, dim = dims(c)
    ends(t, c, False)
    for i in range(c["num_hidden_layers"]):
        norms(t, f"layers.{i}", h, 2)
        attention(t, f"layers.{i}", h, heads, groups, dim, qk="all")
        experts(t, f"layers.{i}", h, c["num_experts"], c["intermediate_size"])


def mpt(t, c):
    h = c["d_model"]
    t.add("wte", c["vocab_size"], h)
    t.add("norm_f", h)
    for i in range(c["n_layers"]):
        norms(t, f"blocks.{i}", h, 2)
        t.linear(f"blocks.{i}.Wqkv", h, 3 * h)
        t.linear(f"blocks.{i}.out_proj", h, h)
        mlp(t, f"blocks.{i}", h, int(c["expansion_ratio"] * h), gated=False)


def falcon(t, c):
    h, heads = c["hidden_size"], c["num_attention_heads"]
    dim = h // heads
    new = get(c, "new_decoder_architecture", False)
    groups = c["num_kv_heads"] if new else 1
    t.add("word_embeddings", c["vocab_size"], h)
    for i in range(c["num_hidden_layers"]):
        for _ in range(2 if new else 1):
            t.add(f"h.{i}.ln.weight", h)
            t.add(f"h.{i}.ln.bias", h)
        t.linear(f"h.{i}.query_key_value", h, (heads + 2 * groups) * dim)
        t.linear(f"h.{i}.dense", h, h)
        mlp(t, f"h.{i}", h, 4 * h, gated=False)
    t.add("ln_f.weight", h)
    t.add("ln_f.bias", h)


def hunyuan_moe(t, c):
    h, heads, groups, dim = dims(c)
    one = lambda key: c[key][0] if isinstance(c[key], list) else c[key]
    ends(t, c, False)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 2)
        attention(t, n, h, heads, groups, dim, qk="head")
        experts(t, n, h, one("num_experts"), c["intermediate_size"])
        mlp(t, n + ".shared_mlp", h, c["intermediate_size"])


def hunyuan(t, c):
    dense_decoder(t, c, qk="head")


def ernie(t, c):
    dense_decoder(t, c, tied=True, groups=2, dim=128)


def ernie_moe(t, c):
    h, heads, groups, dim = dims(c)
    ends(t, c, True)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 2)
        attention(t, n, h, heads, groups, dim)
        if c["moe_layer_start_index"] <= i <= get(c, "moe_layer_end_index", c["num_hidden_layers"] - 1):
            experts(t, n, h, c["moe_num_experts"], c["moe_intermediate_size"])
            mlp(t, n + ".shared", h, c["moe_num_shared_experts"] * c["moe_intermediate_size"])
        else:
            mlp(t, n, h, c["intermediate_size"])


def seed_oss(t, c):
    dense_decoder(t, c, groups=8, dim=128, qkv_bias=get(c, "attention_bias", True), out_bias=get(c, "attention_out_bias", False))


def granite_moe(t, c):
    h, heads, groups, dim = dims(c)
    ends(t, c, False)
    for i in range(c["num_hidden_layers"]):
        norms(t, f"layers.{i}", h, 2)
        attention(t, f"layers.{i}", h, heads, groups, dim)
        experts(t, f"layers.{i}", h, c["num_local_experts"], c["intermediate_size"])


def bailing(t, c):
    h, heads, groups, dim = dims(c)
    ends(t, c, False)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 2)
        attention(t, n, h, heads, groups, dim, qk="head" if get(c, "use_qk_norm", False) else None)
        if i < get(c, "first_k_dense_replace", 0):
            mlp(t, n, h, c["intermediate_size"])
        else:
            experts(t, n, h, c["num_experts"], c["moe_intermediate_size"])
            if c["num_shared_experts"]:
                mlp(t, n + ".shared", h, c["num_shared_experts"] * c["moe_intermediate_size"])


def step3p7(t, c):
    h, size = c["hidden_size"], c["head_dim"]
    groups = c.get("num_key_value_heads") or c["num_attention_groups"]
    other = c.get("attention_other_setting") or {}
    named = c.get("moe_layers_enum")
    with_experts = {int(i) for i in named.split(",")} if named else range(c["first_k_dense_replace"], c["num_hidden_layers"])
    ends(t, c, False)
    for i in range(c["num_hidden_layers"]):
        n = f"layers.{i}"
        norms(t, n, h, 2)
        window = c["layer_types"][i] == "sliding_attention"
        heads = other.get("num_attention_heads", c["num_attention_heads"]) if window else c["num_attention_heads"]
        attention(t, n, h, heads, groups, size, qk="head", gate=heads if get(c, "use_head_wise_attn_gate", False) else 0)
        if i in with_experts:
            experts(t, n, h, c.get("num_experts") or c["moe_num_experts"], c["moe_intermediate_size"])
            mlp(t, n + ".share_expert", h, c["share_expert_dim"])
        else:
            mlp(t, n, h, c["intermediate_size"])


MODELS = {
    "llama": llama, "granite": llama, "smollm3": lambda t, c: dense_decoder(t, c, tied=True, groups=4), "qwen3": qwen3,
    "qwen3_vl_text": qwen3, "qwen3_moe": qwen3_moe,
    "qwen3_vl_moe_text": qwen3_moe, "mixtral": mixtral, "deepseek_v3": deepseek, "kimi_k2": deepseek, "deepseek_v32": deepseek,
    "glm_moe_dsa": deepseek, "deepseek_v4": deepseek_v4, "deepseek_ref": deepseek_v4, "gpt_oss": gpt_oss, "llama4_text": llama4,
    "gemma": gemma, "gemma2": gemma2, "gemma3_text": gemma3, "gemma4_text": gemma4, "glm": glm, "glm4": glm4, "glm4_moe": glm4_moe,
    "minimax_m2": minimax_m2, "minimax_m3": minimax_m3, "minimax_m3_vl": minimax_m3, "mimo": mimo, "mimo_v2_flash": mimo_v2_flash,
    "kimi_linear": kimi_linear, "qwen2_moe": qwen2_moe, "qwen3_next": qwen3_next, "qwen3_5_text": qwen3_next,
    "qwen3_5_moe_text": qwen3_next, "nemotron-nas": nemotron_nas, "nemotron_h": nemotron_h, "phi3": phi3, "olmo2": olmo2,
    "olmo3": olmo2, "olmoe": olmoe, "mpt": mpt, "falcon": falcon, "hunyuan_v1_dense": hunyuan, "hunyuan_v1_moe": hunyuan_moe,
    "ernie4_5": ernie, "ernie4_5_moe": ernie_moe, "seed_oss": seed_oss, "granitemoe": granite_moe, "bailing_moe": bailing,
    "bailing_moe_v2": bailing, "step3p5": step3p7, "step3p7": step3p7,
}


def count(path):
    with open(path) as file:
        config = json.load(file)
    text = config.get("text_config") or config
    if text is not config:
        text.setdefault("tie_word_embeddings", config.get("tie_word_embeddings"))
    tensors = Tensors()
    MODELS[text.get("model_type") or config["model_type"]](tensors, text)
    return tensors.count()


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(path, count(path))
