//! One name for every tensor, whatever project saved it.
//!
//! Inside, vision transformers and EfficientNet-Lite have timm's names and residual networks torchvision's. What the names of
//! the other projects mean is said here and nowhere else. Classifiers and training heads, which no feature needs, are left
//! out; everything else that is not understood stays, and is reported as surplus.

use std::collections::BTreeMap;

use super::{Architecture, LiteKind, Positions};
use crate::weights::Tensor;

type Tensors = BTreeMap<String, Tensor>;

/// The tensors under our names.
pub(crate) fn canonical(tensors: Tensors, architecture: &Architecture) -> Tensors {
    match architecture {
        Architecture::Vit { positions, .. } => vit(tensors, *positions),
        // Our own: no project but this one names them.
        Architecture::Conv4(_) => tensors,
        Architecture::ResNet(_) => renamed(tensors, &["fc."], resnet_name),
        Architecture::Lite(kind) => renamed(tensors, &["classifier.", "_fc."], |name| lite_name(name, *kind)),
    }
}

/// Tensors with new names, without those of the given prefixes.
fn renamed(tensors: Tensors, unwanted: &[&str], rename: impl Fn(&str) -> Option<String>) -> Tensors {
    tensors
        .into_iter()
        .filter(|(name, _)| !unwanted.iter().any(|prefix| name.starts_with(prefix)))
        .map(|(name, tensor)| (rename(&name).unwrap_or(name), tensor))
        .collect()
}

fn vit(tensors: Tensors, positions: Positions) -> Tensors {
    // A model with a head of its own keeps its body under the name of its kind.
    let body = |name: &str| {
        let known = ["vit.", "dinov2.", "dinov2_with_registers.", "dinov3_vit."];
        let short = known.iter().find_map(|prefix| name.strip_prefix(prefix));
        short.unwrap_or(name).to_owned()
    };
    let tensors: Tensors = tensors
        .into_iter()
        .map(|(name, tensor)| (body(&name), tensor))
        .collect();
    let unwanted = [
        "head.",
        "fc.",
        "classifier.",
        "pooler.",
        "mask_token",
        "embeddings.mask_token",
        "dino_head.",
        // Of DINOv3: the periods of its rotations, which are always the same, and a norm that only its training has.
        "rope",
        "local_cls_norm.",
    ];
    let mut tensors = renamed(tensors, &unwanted, vit_name);
    gated_names(&mut tensors);
    if positions == Positions::Rotary {
        whole_biases(&mut tensors);
    }
    join_queries_keys_values(&mut tensors);
    // DINOv2 and DINOv3 count their registers as 1 × n × dim, as we do; timm calls them otherwise.
    for theirs in ["register_tokens", "storage_tokens"] {
        if let Some(registers) = tensors.remove(theirs) {
            tensors.insert("reg_token".to_owned(), registers);
        }
    }
    tensors
}

fn vit_name(name: &str) -> Option<String> {
    let embeddings = [
        ("embeddings.cls_token", "cls_token"),
        ("embeddings.register_tokens", "reg_token"),
        ("embeddings.position_embeddings", "pos_embed"),
        (
            "embeddings.patch_embeddings.projection.weight",
            "patch_embed.proj.weight",
        ),
        ("embeddings.patch_embeddings.projection.bias", "patch_embed.proj.bias"),
        ("embeddings.patch_embeddings.weight", "patch_embed.proj.weight"),
        ("embeddings.patch_embeddings.bias", "patch_embed.proj.bias"),
        ("layernorm.weight", "norm.weight"),
        ("layernorm.bias", "norm.bias"),
    ];
    if let Some((_, ours)) = embeddings.iter().find(|(theirs, _)| *theirs == name) {
        return Some((*ours).to_owned());
    }
    let layers = ["encoder.layer.", "layers.", "model.layer.", "layer."];
    if let Some(rest) = layers.iter().find_map(|prefix| name.strip_prefix(prefix)) {
        let (block, part) = rest.split_once('.')?;
        let parts = [
            ("layernorm_before.", "norm1."),
            ("layernorm_after.", "norm2."),
            ("attention.attention.query.", "attn.q."),
            ("attention.attention.key.", "attn.k."),
            ("attention.attention.value.", "attn.v."),
            ("attention.q_proj.", "attn.q."),
            ("attention.k_proj.", "attn.k."),
            ("attention.v_proj.", "attn.v."),
            ("attention.o_proj.", "attn.proj."),
            ("attention.output.dense.", "attn.proj."),
            ("layer_scale1.lambda1", "ls1.gamma"),
            ("layer_scale2.lambda1", "ls2.gamma"),
            ("intermediate.dense.", "mlp.fc1."),
            ("output.dense.", "mlp.fc2."),
            ("mlp.gate_proj.", "mlp.fc1_g."),
            ("mlp.up_proj.", "mlp.fc1."),
            ("mlp.down_proj.", "mlp.fc2."),
        ];
        let ours = parts
            .iter()
            .find_map(|(theirs, ours)| Some(format!("{ours}{}", part.strip_prefix(theirs)?)));
        return Some(format!("blocks.{block}.{}", ours.unwrap_or_else(|| part.to_owned())));
    }
    // DINOv3 in timm, and in its own code.
    let others = [
        (".gamma_1", ".ls1.gamma"),
        (".gamma_2", ".ls2.gamma"),
        (".attn.q_bias", ".attn.q.bias"),
        (".attn.v_bias", ".attn.v.bias"),
        (".mlp.w1.weight", ".mlp.fc1_g.weight"),
        (".mlp.w1.bias", ".mlp.fc1_g.bias"),
        (".mlp.w2.weight", ".mlp.fc1.weight"),
        (".mlp.w2.bias", ".mlp.fc1.bias"),
        (".mlp.w3.weight", ".mlp.fc2.weight"),
        (".mlp.w3.bias", ".mlp.fc2.bias"),
    ];
    let other = |(theirs, ours): &(&str, &str)| Some(format!("{}{ours}", name.strip_suffix(theirs)?));
    if let Some(ours) = others.iter().find_map(other).filter(|_| name.starts_with("blocks.")) {
        return Some(ours);
    }
    // DINOv2's own training code keeps its blocks in chunks: blocks.CHUNK.BLOCK.part.
    let rest = name.strip_prefix("blocks.")?;
    let mut words = rest.splitn(3, '.');
    let (_, block, part) = (words.next()?, words.next()?, words.next()?);
    block.parse::<usize>().ok()?;
    Some(format!("blocks.{block}.{part}"))
}

/// The inner layer that has a gate is called otherwise than the one that has none.
fn gated_names(tensors: &mut Tensors) {
    for kind in ["weight", "bias"] {
        let gate = format!(".mlp.fc1_g.{kind}");
        let gated: Vec<String> = tensors
            .keys()
            .filter_map(|name| Some(name.strip_suffix(&gate)?.to_owned()))
            .collect();
        for block in gated {
            if let Some(tensor) = tensors.remove(&format!("{block}.mlp.fc1.{kind}")) {
                tensors.insert(format!("{block}.mlp.fc1_x.{kind}"), tensor);
            }
        }
    }
}

/// Keys of DINOv3 have no bias, and in timm's files of it queries and values have none either: what is missing is zeros. Its own
/// code has a bias for all three, and a mask that takes that of the keys away.
fn whole_biases(tensors: &mut Tensors) {
    let zeros = |length| Tensor {
        shape: vec![length],
        values: vec![0.0; length],
    };
    let of = |tensors: &Tensors, suffix: &str| -> Vec<(String, usize)> {
        let found = tensors.iter().filter_map(|(name, tensor)| {
            let rows = *tensor.shape.first()?;
            Some((name.strip_suffix(suffix)?.to_owned(), rows))
        });
        found.collect()
    };
    for (attention, rows) in of(tensors, ".attn.qkv.weight") {
        let name = |part: &str| format!("{attention}.attn.{part}");
        let masked = tensors.remove(&name("qkv.bias_mask")).is_some();
        let third = rows / 3;
        let parts = ["q.bias", "v.bias"].map(|part| tensors.remove(&name(part)));
        let bias = tensors.entry(name("qkv.bias")).or_insert_with(|| zeros(rows));
        if bias.values.len() != rows {
            continue;
        }
        for (part, start) in parts.into_iter().zip([0, 2 * third]) {
            if let Some(part) = part.filter(|part| part.values.len() == third) {
                bias.values[start..start + third].copy_from_slice(&part.values);
            }
        }
        if masked {
            bias.values[third..2 * third].fill(0.0);
        }
    }
    for (attention, rows) in of(tensors, ".attn.k.weight") {
        let name = format!("{attention}.attn.k.bias");
        tensors.entry(name).or_insert_with(|| zeros(rows));
    }
}

/// Three matrices of queries, keys and values become the one of the other projects.
fn join_queries_keys_values(tensors: &mut Tensors) {
    let starts: Vec<String> = tensors
        .keys()
        .filter_map(|name| Some(name.strip_suffix(".attn.q.weight")?.to_owned()))
        .collect();
    for start in starts {
        for (kind, dimensions) in [("weight", 2), ("bias", 1)] {
            let names = ["q", "k", "v"].map(|part| format!("{start}.attn.{part}.{kind}"));
            let fits = |name: &String| tensors.get(name).is_some_and(|tensor| tensor.shape.len() == dimensions);
            // What does not fit stays as it is and is reported under its own name.
            if names.iter().all(fits) {
                let mut joined = Tensor {
                    shape: Vec::new(),
                    values: Vec::new(),
                };
                for tensor in names.iter().filter_map(|name| tensors.remove(name)) {
                    let rows = joined.shape.first().copied().unwrap_or(0) + tensor.shape[0];
                    joined.shape = tensor.shape;
                    joined.shape[0] = rows;
                    joined.values.extend(tensor.values);
                }
                // Parts of different widths would not be a matrix.
                if joined.shape.iter().product::<usize>() == joined.values.len() {
                    tensors.insert(format!("{start}.attn.qkv.{kind}"), joined);
                }
            }
        }
    }
}

fn resnet_name(name: &str) -> Option<String> {
    let name = name.strip_prefix("resnet.").unwrap_or(name);
    let part = |rest: &str, conv: &str, norm: &str| {
        let (kind, field) = rest.split_once('.')?;
        match kind {
            "convolution" => Some(format!("{conv}.{field}")),
            "normalization" => Some(format!("{norm}.{field}")),
            _ => None,
        }
    };
    if let Some(rest) = name.strip_prefix("embedder.embedder.") {
        return part(rest, "conv1", "bn1");
    }
    let mut words = name.strip_prefix("encoder.stages.")?.splitn(4, '.');
    let stage: usize = words.next()?.parse().ok()?;
    let (_, block, rest) = (words.next()?, words.next()?, words.next()?);
    let start = format!("layer{}.{block}", stage.checked_add(1)?);
    if let Some(rest) = rest.strip_prefix("shortcut.") {
        return part(rest, &format!("{start}.downsample.0"), &format!("{start}.downsample.1"));
    }
    let (number, rest) = rest.strip_prefix("layer.")?.split_once('.')?;
    let number = number.parse::<usize>().ok()?.checked_add(1)?;
    part(rest, &format!("{start}.conv{number}"), &format!("{start}.bn{number}"))
}

/// The names of the PyTorch port of TensorFlow's EfficientNet: `_blocks.7._depthwise_conv.weight`.
fn lite_name(name: &str, kind: LiteKind) -> Option<String> {
    for (theirs, ours) in [
        ("_conv_stem.", "conv_stem."),
        ("_bn0.", "bn1."),
        ("_conv_head.", "conv_head."),
        ("_bn1.", "bn2."),
    ] {
        if let Some(field) = name.strip_prefix(theirs) {
            return Some(format!("{ours}{field}"));
        }
    }
    let (number, rest) = name.strip_prefix("_blocks.")?.split_once('.')?;
    let &(stage, at) = kind.places().get(number.parse::<usize>().ok()?)?;
    let (part, field) = rest.split_once('.')?;
    let ours = match (part, stage) {
        ("_depthwise_conv", _) => "conv_dw",
        // The first stage does not widen: its norms count from one.
        ("_bn1", 0) => "bn1",
        ("_project_conv", 0) => "conv_pw",
        ("_bn2", 0) => "bn2",
        ("_expand_conv", _) => "conv_pw",
        ("_bn0", _) => "bn1",
        ("_bn1", _) => "bn2",
        ("_project_conv", _) => "conv_pwl",
        ("_bn2", _) => "bn3",
        _ => return None,
    };
    Some(format!("blocks.{stage}.{at}.{ours}.{field}"))
}
