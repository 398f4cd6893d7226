//! Encoders by text.

use genus_vision::{Architecture, EncoderSpec, MODELS, VitShape, Weights};

#[test]
fn the_text_of_an_encoder_gives_it_again() {
    let texts = [
        "dinov2-small:size=448",
        "dino-vitb16:size=96,heads=6,positions=plain",
        "vit",
        "vit:heads=6",
        "vit:size=28,patch=7,dim=96,depth=4,heads=3",
        "vit:hidden=100,dim=50,heads=5",
        "conv4:width=32,size=16",
        "resnet18:size=32",
        "efficientnet-lite2",
    ];
    for text in texts.into_iter().chain(MODELS.iter().map(|model| model.name)) {
        let spec = EncoderSpec::parse(text).unwrap();
        let again = EncoderSpec::parse(&spec.to_string()).unwrap_or_else(|e| panic!("{text}: {spec}: {e}"));
        assert_eq!(again.architecture, spec.architecture, "{text}: {spec}");
        assert_eq!(again.transform, spec.transform, "{text}: {spec}");
    }
    assert_eq!(
        EncoderSpec::parse("resnet18:size=32").unwrap().to_string(),
        "resnet18:size=32"
    );
    assert_eq!(EncoderSpec::parse("resnet18:size=224").unwrap().to_string(), "resnet18");
}

#[test]
fn parameters_that_an_encoder_does_not_have_are_refused() {
    for (text, part) in [
        ("resnet18:width=3", "it has size"),
        ("dino-vitb16:dim=3", "size, heads and positions"),
        ("vit:width=3", "patch, dim, depth and hidden"),
        ("conv4:width=0", "number of channels"),
        ("vit:depth=9999", "number of blocks"),
        ("conv4:size=0", "1 to 2048"),
        ("vit:heads=1025", "1 to 1024"),
        ("vit:hidden=65537", "1 to 65536"),
        ("vit:dim=8192,depth=256", "it may have 1073741824"),
    ] {
        let message = EncoderSpec::parse(text).unwrap_err().to_string();
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn a_misspelt_name_gets_a_suggestion() {
    for (text, meant) in [
        ("dino-vitb-16", "dino-vitb16"),
        ("dinov2-smal", "dinov2-small"),
        ("Dino-ViTB16", "dino-vitb16"),
        ("dino_vitb16", "dino-vitb16"),
        ("resnet-50", "resnet50"),
        ("efficientnet_lite0", "efficientnet-lite0"),
    ] {
        let message = EncoderSpec::parse(text).unwrap_err().to_string();
        assert!(
            message.ends_with(&format!("did you mean `{meant}`?")),
            "{text}: {message}"
        );
    }
    let message = EncoderSpec::parse("clip").unwrap_err().to_string();
    assert_eq!(message, "there is no encoder `clip`");
}

#[test]
fn parameters_are_those_that_a_network_begins_with() {
    for text in [
        "vit:size=28,patch=7,dim=96,depth=4,heads=3",
        "vit:size=32,patch=16,dim=64,depth=1,heads=2,positions=rotary",
        "conv4:width=32",
        "resnet18",
        "efficientnet-lite0",
    ] {
        let spec = EncoderSpec::parse(text).unwrap();
        let image = spec.transform.crop;
        let weights = Weights::first_values(&spec.architecture, image, 0).unwrap();
        let learnt = weights.tensors.iter().filter(|(name, _)| !name.contains(".running_"));
        let count: usize = learnt.map(|(_, tensor)| tensor.values.len()).sum();
        assert_eq!(spec.architecture.parameters(image), Some(count as u64), "{text}");
    }
}

/// Registers, scales and gates have no names in a text.
#[test]
fn parameters_of_every_transformer_are_counted() {
    for model in MODELS {
        let Architecture::Vit {
            shape: Some(shape),
            positions,
            heads,
        } = model.architecture
        else {
            continue;
        };
        let small = Architecture::Vit {
            shape: Some(VitShape {
                dim: 4 * shape.heads,
                hidden: 24,
                depth: 2,
                ..shape
            }),
            positions,
            heads,
        };
        let image = 2 * shape.patch;
        let weights = Weights::first_values(&small, image, 0).unwrap();
        let count: usize = weights.tensors.values().map(|tensor| tensor.values.len()).sum();
        assert_eq!(small.parameters(image), Some(count as u64), "{}", model.name);
    }
}

/// As their projects publish them, in millions.
#[test]
fn parameters_and_downloads_are_the_published_ones() {
    for (name, millions) in [
        ("dino-vitb16", 85.8),
        ("dino-vits16", 21.7),
        ("dinov2-small", 22.1),
        ("dinov2-base", 86.6),
        ("dinov2-large", 304.4),
        ("resnet18", 11.2),
        ("resnet50", 23.5),
    ] {
        let model = EncoderSpec::parse(name).unwrap().model;
        let found = model.parameters().unwrap() as f64 / 1e6;
        assert!((found - millions).abs() < 0.06, "{name}: {found}");
        assert!(model.download().unwrap() >= 4 * model.parameters().unwrap());
    }
}
