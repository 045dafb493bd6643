//! BERT as an encoder, written out: embeddings, then layers of attention and a wide step, then the mean of the tokens.
//! (Devlin and others, 2018; pooling after Reimers and Gurevych, 2019.)
//!
//! One text at a time: no padding, so no mask either, and nothing is computed that is thrown away.

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut1, Axis, Slice};
use serde::Deserialize;

use crate::embed::safetensors::{Tensor, Tensors};

/// `config.json`, as far as it says what is computed.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Config {
    model_type: String,
    hidden_act: String,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    layer_norm_eps: f32,
    /// The longest text in tokens, marks included.
    pub max_position_embeddings: usize,
}

/// How the vectors of the tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooling {
    /// Their mean.
    Mean,
    /// The one of the first mark.
    First,
}

impl Config {
    /// What of the configuration cannot be computed here.
    pub(super) fn check(&self) -> Result<(), String> {
        let heads = self.num_attention_heads;
        if self.model_type != "bert" {
            return Err(format!(
                "it is of type `{}`, and only `bert` can be run",
                self.model_type
            ));
        }
        if self.hidden_act != "gelu" {
            return Err(format!(
                "its `hidden_act` is `{}`, and only `gelu` can be run",
                self.hidden_act
            ));
        }
        if heads == 0 || self.hidden_size == 0 || !self.hidden_size.is_multiple_of(heads) {
            return Err(format!(
                "{} dimensions do not share out among {heads} heads",
                self.hidden_size
            ));
        }
        if self.max_position_embeddings < 4 || self.num_hidden_layers > 96 {
            return Err("its sizes make no sense".to_owned());
        }
        Ok(())
    }

    /// The length of its vectors.
    pub(super) fn dimensions(&self) -> usize {
        self.hidden_size
    }
}

/// The weights.
#[derive(Debug)]
pub(super) struct Bert {
    config: Config,
    words: Array2<f32>,
    /// The positions, with the first token type already added.
    positions: Array2<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    /// Query, key and value in one.
    attention: Linear,
    joined: Linear,
    attention_norm: Norm,
    wide: Linear,
    narrow: Linear,
    norm: Norm,
}

/// `x Wᵀ + b`.
#[derive(Debug)]
struct Linear {
    weight: Array2<f32>,
    bias: Array1<f32>,
}

impl Linear {
    fn apply(&self, x: &ArrayView2<'_, f32>) -> Array2<f32> {
        x.dot(&self.weight.t()) + &self.bias
    }
}

/// Each row at mean 0 and variance 1, then scaled and moved.
#[derive(Debug)]
struct Norm {
    weight: Array1<f32>,
    bias: Array1<f32>,
    epsilon: f32,
}

impl Norm {
    fn apply(&self, x: &mut Array2<f32>) {
        for mut row in x.rows_mut() {
            let mean = row.mean().unwrap_or_default();
            row -= mean;
            let variance = row.mapv(|value| value * value).mean().unwrap_or_default();
            row *= (variance + self.epsilon).sqrt().recip();
            row *= &self.weight;
            row += &self.bias;
        }
    }
}

impl Bert {
    /// Takes the weights out of a file. `Err` says what is wrong with it.
    pub(super) fn read(config: Config, pieces: usize, file: &[u8]) -> Result<Self, String> {
        config.check()?;
        let parts = Parts {
            tensors: Tensors::read(file)?,
            config: &config,
        };
        let hidden = config.hidden_size;
        let words = parts.matrix("embeddings.word_embeddings.weight", None, hidden)?;
        if words.nrows() < pieces {
            return Err(format!(
                "it has rows for {} of the tokenizer's {pieces} pieces",
                words.nrows()
            ));
        }
        let mut positions = parts.matrix(
            "embeddings.position_embeddings.weight",
            Some(config.max_position_embeddings),
            hidden,
        )?;
        let types = parts.matrix("embeddings.token_type_embeddings.weight", None, hidden)?;
        if let Some(first) = types.rows().into_iter().next() {
            positions += &first;
        }
        Ok(Self {
            words,
            positions,
            norm: parts.norm("embeddings.LayerNorm")?,
            layers: (0..config.num_hidden_layers)
                .map(|number| parts.layer(number))
                .collect::<Result<_, _>>()?,
            config,
        })
    }

    /// The vector of a text, given its tokens with their marks; no more of them than there are positions.
    pub(super) fn encode(&self, tokens: &[u16], pooling: Pooling) -> Vec<f32> {
        let mut x = Array2::zeros((tokens.len(), self.config.hidden_size));
        for (mut row, (token, position)) in x
            .rows_mut()
            .into_iter()
            .zip(tokens.iter().zip(self.positions.rows()))
        {
            row += &position;
            row += &self.words.row(usize::from(*token));
        }
        self.norm.apply(&mut x);
        for layer in &self.layers {
            x = layer.apply(&x, self.config.num_attention_heads);
        }
        match pooling {
            Pooling::Mean => x.mean_axis(Axis(0)).map(|mean| mean.to_vec()).unwrap_or_default(),
            Pooling::First => x
                .rows()
                .into_iter()
                .next()
                .map(|row| row.to_vec())
                .unwrap_or_default(),
        }
    }
}

impl Layer {
    fn apply(&self, x: &Array2<f32>, heads: usize) -> Array2<f32> {
        let hidden = x.ncols();
        let width = hidden / heads;
        let all = self.attention.apply(&x.view());
        #[expect(
            clippy::cast_precision_loss,
            reason = "the width of a head is a small whole number"
        )]
        let scale = (width as f32).sqrt().recip();
        let mut seen = Array2::zeros(x.raw_dim());
        for start in (0..hidden).step_by(width) {
            let part = |third: usize| {
                let start = third * hidden + start;
                all.slice_axis(Axis(1), Slice::from(start..start + width))
            };
            let mut scores = part(0).dot(&part(1).t());
            scores *= scale;
            scores.rows_mut().into_iter().for_each(softmax);
            seen.slice_axis_mut(Axis(1), Slice::from(start..start + width))
                .assign(&scores.dot(&part(2)));
        }
        let mut x = self.joined.apply(&seen.view()) + x;
        self.attention_norm.apply(&mut x);
        let mut wide = self.wide.apply(&x.view());
        wide.mapv_inplace(gelu);
        let mut out = self.narrow.apply(&wide.view()) + &x;
        self.norm.apply(&mut out);
        out
    }
}

fn softmax(mut row: ArrayViewMut1<'_, f32>) {
    let greatest = row.fold(f32::NEG_INFINITY, |greatest, value| greatest.max(*value));
    row.mapv_inplace(|value| (value - greatest).exp());
    let sum = row.sum();
    row /= sum;
}

/// `x Φ(x)`, with the error function to 1.5e-7 (Abramowitz and Stegun, 7.1.26).
fn gelu(x: f32) -> f32 {
    const COEFFICIENTS: [f32; 5] = [1.061_405_4, -1.453_152, 1.421_413_8, -0.284_496_74, 0.254_829_6];
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = (1.0 + 0.327_591_1 * z).recip();
    let polynomial = COEFFICIENTS
        .iter()
        .fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    // 1 - erf(|x|/√2), of which the half is Φ(-|x|).
    let rest = polynomial * (-z * z).exp();
    if x > 0.0 {
        x * (1.0 - 0.5 * rest)
    } else {
        x * 0.5 * rest
    }
}

struct Parts<'a> {
    tensors: Tensors<'a>,
    config: &'a Config,
}

impl Parts<'_> {
    fn layer(&self, number: usize) -> Result<Layer, String> {
        let hidden = self.config.hidden_size;
        let wide = self.config.intermediate_size;
        let name = |part: &str| format!("encoder.layer.{number}.{part}");
        let [query, key, value] = ["query", "key", "value"]
            .map(|part| self.linear(&name(&format!("attention.self.{part}")), hidden, hidden));
        let (query, key, value) = (query?, key?, value?);
        let joined = |problem: ndarray::ShapeError| problem.to_string();
        Ok(Layer {
            attention: Linear {
                weight: ndarray::concatenate(
                    Axis(0),
                    &[query.weight.view(), key.weight.view(), value.weight.view()],
                )
                .map_err(joined)?,
                bias: ndarray::concatenate(Axis(0), &[query.bias.view(), key.bias.view(), value.bias.view()])
                    .map_err(joined)?,
            },
            joined: self.linear(&name("attention.output.dense"), hidden, hidden)?,
            attention_norm: self.norm(&name("attention.output.LayerNorm"))?,
            wide: self.linear(&name("intermediate.dense"), wide, hidden)?,
            narrow: self.linear(&name("output.dense"), hidden, wide)?,
            norm: self.norm(&name("output.LayerNorm"))?,
        })
    }

    fn linear(&self, name: &str, rows: usize, columns: usize) -> Result<Linear, String> {
        Ok(Linear {
            weight: self.matrix(&format!("{name}.weight"), Some(rows), columns)?,
            bias: self.vector(&format!("{name}.bias"), rows)?,
        })
    }

    fn norm(&self, name: &str) -> Result<Norm, String> {
        let hidden = self.config.hidden_size;
        Ok(Norm {
            weight: self.vector(&format!("{name}.weight"), hidden)?,
            bias: self.vector(&format!("{name}.bias"), hidden)?,
            epsilon: self.config.layer_norm_eps,
        })
    }

    fn matrix(&self, name: &str, rows: Option<usize>, columns: usize) -> Result<Array2<f32>, String> {
        let tensor = self.tensor(name)?;
        match *tensor.shape {
            [its_rows, its_columns] if its_columns == columns && rows.is_none_or(|rows| rows == its_rows) => {
                Array2::from_shape_vec((its_rows, its_columns), numbers(name, &tensor)?)
                    .map_err(|problem| problem.to_string())
            }
            _ => Err(format!(
                "`{name}` has the shape {:?}, which the configuration does not say",
                tensor.shape
            )),
        }
    }

    fn vector(&self, name: &str, length: usize) -> Result<Array1<f32>, String> {
        let tensor = self.tensor(name)?;
        if *tensor.shape == [length] {
            Ok(numbers(name, &tensor)?.into())
        } else {
            Err(format!(
                "`{name}` has the shape {:?}, which the configuration does not say",
                tensor.shape
            ))
        }
    }

    /// Files of a model with a head have its parts below `bert.`.
    fn tensor(&self, name: &str) -> Result<Tensor<'_, '_>, String> {
        self.tensors
            .get(name)
            .or_else(|problem| self.tensors.get(&format!("bert.{name}")).map_err(|_| problem))
    }
}

fn numbers(name: &str, tensor: &Tensor<'_, '_>) -> Result<Vec<f32>, String> {
    match tensor.dtype {
        "F32" => Ok(tensor
            .bytes
            .as_chunks()
            .0
            .iter()
            .map(|number| f32::from_le_bytes(*number))
            .collect()),
        // The upper half of an f32.
        "BF16" => Ok(tensor
            .bytes
            .as_chunks()
            .0
            .iter()
            .map(|number| f32::from_bits(u32::from(u16::from_le_bytes(*number)) << 16))
            .collect()),
        other => Err(format!("`{name}` is of type {other}; convert the model to F32")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gelu_is_that_of_the_error_function() {
        // From a table of the normal distribution: Φ(1) = 0.8413447, Φ(2) = 0.9772499, Φ(0.5) = 0.6914625.
        for (x, expected) in [
            (0.0, 0.0),
            (1.0, 0.841_344_7),
            (-1.0, -0.158_655_26),
            (2.0, 1.954_499_8),
            (0.5, 0.345_731_23),
            (-9.0, 0.0),
            (40.0, 40.0),
        ] {
            assert!((gelu(x) - expected).abs() < 1e-6, "{x}: {}", gelu(x));
        }
    }

    #[test]
    fn a_softmax_sums_to_one_however_great_its_values() {
        let mut row = ndarray::arr1(&[1e30, 1e30, 0.0]);
        softmax(row.view_mut());
        assert_eq!(row.to_vec(), [0.5, 0.5, 0.0]);
    }

    #[test]
    fn a_configuration_that_cannot_be_run_is_told() {
        let config = |change: (&str, serde_json::Value)| {
            let mut config = serde_json::json!({
                "model_type": "bert", "hidden_act": "gelu", "hidden_size": 8, "num_hidden_layers": 1,
                "num_attention_heads": 2, "intermediate_size": 16, "layer_norm_eps": 1e-12,
                "max_position_embeddings": 16,
            });
            config[change.0] = change.1;
            serde_json::from_value::<Config>(config).unwrap().check()
        };
        assert_eq!(config(("hidden_size", 8.into())), Ok(()));
        for (key, value, part) in [
            ("model_type", "xlm-roberta".into(), "xlm-roberta"),
            ("hidden_act", "relu".into(), "relu"),
            ("num_attention_heads", 0.into(), "0 heads"),
            ("num_attention_heads", 3.into(), "3 heads"),
            ("max_position_embeddings", 0.into(), "sizes"),
        ] {
            let fault = config((key, value)).unwrap_err();
            assert!(fault.contains(part), "{fault}");
        }
    }
}
