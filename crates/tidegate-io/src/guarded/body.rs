//! Reading a body within its bound, unpacked.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::Error;

/// How a body is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    /// Not at all.
    Plain,
    /// RFC 1952.
    Gzip,
    /// RFC 1950.
    Deflate,
}

impl Packing {
    /// Reads `content-encoding`. One layer; several are only ever sent to do harm.
    pub(super) fn of(encoding: Option<&str>) -> Result<Self, Error> {
        match encoding.unwrap_or("").trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::Plain),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "deflate" => Ok(Self::Deflate),
            _ => Err(Error::Encoding),
        }
    }
}

/// Takes bytes up to a bound and fails on the first one beyond.
#[derive(Debug)]
struct Bounded {
    bytes: Vec<u8>,
    bytes_max: usize,
    is_full: bool,
}

impl Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let room = self.bytes_max - self.bytes.len();
        if piece.len() > room {
            self.bytes
                .extend_from_slice(piece.get(..room).unwrap_or_default());
            self.is_full = true;
            return Err(io::Error::other("full"));
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Unpacker {
    Plain(Bounded),
    Gzip(Box<MultiGzDecoder<Bounded>>),
    Deflate(Box<ZlibDecoder<Bounded>>),
}

impl Unpacker {
    fn new(packing: Packing, bytes_max: usize) -> Self {
        let bounded = Bounded {
            bytes: Vec::new(),
            bytes_max,
            is_full: false,
        };
        match packing {
            Packing::Plain => Self::Plain(bounded),
            Packing::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(bounded))),
            Packing::Deflate => Self::Deflate(Box::new(ZlibDecoder::new(bounded))),
        }
    }

    fn take(&mut self, piece: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(bounded) => bounded.write_all(piece),
            Self::Gzip(decoder) => decoder.write_all(piece),
            Self::Deflate(decoder) => decoder.write_all(piece),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Gzip(decoder) => decoder.try_finish(),
            Self::Deflate(decoder) => decoder.try_finish(),
        }
    }

    fn bounded(&mut self) -> &mut Bounded {
        match self {
            Self::Plain(bounded) => bounded,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Deflate(decoder) => decoder.get_mut(),
        }
    }
}

/// The body up to `bytes_max`, unpacked, and whether more was left. At most as many bytes are read from the
/// peer as are kept, and a little for what packing adds.
pub(super) async fn read(
    mut body: Incoming,
    packing: Packing,
    bytes_max: usize,
) -> Result<(Vec<u8>, bool), Error> {
    const PACKING_BYTES_MAX: usize = 64 << 10;
    let mut unpacker = Unpacker::new(packing, bytes_max);
    let mut received: usize = 0;
    while let Some(piece) = next(&mut body).await? {
        received = received.saturating_add(piece.len());
        let taken = unpacker.take(&piece);
        let bounded = unpacker.bounded();
        if bounded.is_full {
            return Ok((std::mem::take(&mut bounded.bytes), true));
        }
        if taken.is_err() || received > bytes_max.saturating_add(PACKING_BYTES_MAX) {
            return Err(Error::Encoding);
        }
    }
    let finished = if received == 0 { Ok(()) } else { unpacker.finish() };
    let bounded = unpacker.bounded();
    if finished.is_err() && !bounded.is_full {
        return Err(Error::Encoding);
    }
    Ok((std::mem::take(&mut bounded.bytes), bounded.is_full))
}

/// The next piece of data; trailers are dropped.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, Error> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|problem| Error::Broken(crate::http::root_cause(&problem)))?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}
