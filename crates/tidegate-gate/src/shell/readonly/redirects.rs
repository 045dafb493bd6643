//! Redirections that change nothing.

use super::{Judge, Judged, Reason};
use crate::shell::{
    Access,
    plan::{Part, Redirection},
    programs::touch,
    syntax::{Redirect, RedirectKind},
};

impl Judge<'_> {
    pub(super) fn redirections(&mut self, redirects: &[Redirect]) -> Judged<Vec<Redirection>> {
        let mut all = Vec::with_capacity(redirects.len());
        for redirect in redirects {
            self.redirection(redirect, &mut all)?;
        }
        Ok(all)
    }

    fn redirection(&mut self, redirect: &Redirect, all: &mut Vec<Redirection>) -> Judged<()> {
        let refused = || Reason::new("redirection", "a file would be written, or a descriptor opened");
        let own = match redirect.kind {
            RedirectKind::Read
            | RedirectKind::CopyIn
            | RedirectKind::HereString
            | RedirectKind::HereDocument => "0",
            RedirectKind::Write | RedirectKind::WriteBoth | RedirectKind::CopyOut => "1",
        };
        let descriptor = match redirect.descriptor.as_deref().unwrap_or(own) {
            "0" => 0,
            "1" => 1,
            "2" => 2,
            _ => return Err(refused()),
        };
        let (shape, argument) = self.word(redirect.operand())?;
        let text = shape.known().unwrap_or_default();
        match (redirect.kind, descriptor) {
            (RedirectKind::Read, 0) => {
                if let [Part::Stream(node)] = argument.parts.as_slice() {
                    all.push(Redirection::InputStream(node.clone()));
                    return Ok(());
                }
                let mut touched = Vec::new();
                touch(&shape, Access::Read, true, &mut touched).map_err(|unlisted| unlisted.reason("<"))?;
                if shape.known().is_none() || (touched.is_empty() && text != "/dev/null") {
                    return Err(refused());
                }
                self.touch(touched)?;
                all.push(Redirection::InputFile(argument));
            }
            (RedirectKind::HereString, 0) => {
                let mut text = argument;
                text.parts.push(Part::Text("\n".to_owned()));
                all.push(Redirection::InputText(text));
            }
            (RedirectKind::HereDocument, 0) => all.push(Redirection::InputText(argument)),
            (RedirectKind::Write, 1 | 2) if text == "/dev/null" => all.push(Redirection::Discard(descriptor)),
            (RedirectKind::WriteBoth, 1) if text == "/dev/null" => {
                all.push(Redirection::Discard(1));
                all.push(Redirection::Discard(2));
            }
            (RedirectKind::CopyOut, 1 | 2) => match text {
                "1" => all.push(Redirection::Join(descriptor, 1)),
                "2" => all.push(Redirection::Join(descriptor, 2)),
                "/dev/null" if redirect.descriptor.is_none() => {
                    all.push(Redirection::Discard(1));
                    all.push(Redirection::Discard(2));
                }
                _ => return Err(refused()),
            },
            _ => return Err(refused()),
        }
        Ok(())
    }
}
