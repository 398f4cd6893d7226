//! Encoders by text.

use genus_vision::{EncoderSpec, MODELS};

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
