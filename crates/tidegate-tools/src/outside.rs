//! What the tools reach beside the knowledge bank: programs behind walls, and other machines.

use std::{path::PathBuf, sync::Arc};

use tidegate_core::port::KnowledgeBase;
use tidegate_gate::{
    Zones,
    shell::{Place, Policy},
};
use tidegate_io::{
    files::View,
    guarded::Client,
    sandbox::{self, Level, Sandbox},
};
use tokio::sync::OnceCell;

use crate::runners::sandbox::Walls;

/// Where commands run, by what rules, and what they may reach.
#[derive(Debug, Clone)]
pub struct Outside {
    /// The client of every tool that a model can steer over the network.
    pub network: Client,
    /// How command lines are judged.
    pub shell: Arc<Policy>,
    /// Where a line is taken to run: its working folder, and what `~` means.
    pub place: Place,
    /// The file system that the files of a line are looked up in: the machine's.
    pub view: View,
    /// How programs are isolated.
    pub isolation: Isolation,
    /// The indexed documents; without them the tools over them are not offered.
    pub knowledge: Option<Arc<dyn KnowledgeBase>>,
}

/// Whether and how programs may be run.
#[derive(Debug, Clone)]
pub enum Isolation {
    /// In a sandbox of the machine, tried once, when first asked for or at [`crate::Tools::sandbox`].
    Sandbox {
        /// What the operator wants of it.
        options: sandbox::Options,
        /// tidegate's own binary, which confines itself and then becomes the program.
        program: PathBuf,
    },
    /// Nothing is run, and lines are judged as if files could be hidden: to see what would be decided.
    Judged,
}

/// The sandbox, once somebody has asked for it.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    sandbox: OnceCell<Sandbox>,
    walls: OnceCell<Walls>,
}

impl Tried {
    /// What is known of the machine, without what depends on the policy.
    pub(crate) fn without_walls(&self) -> Self {
        Self {
            sandbox: self.sandbox.clone(),
            walls: OnceCell::new(),
        }
    }

    /// The sandbox; `None` where nothing is run.
    pub(crate) async fn sandbox(&self, isolation: &Isolation) -> Option<&Sandbox> {
        match isolation {
            Isolation::Sandbox { options, program } => {
                let open = || Sandbox::open(options.clone(), program);
                Some(self.sandbox.get_or_init(open).await)
            }
            Isolation::Judged => None,
        }
    }

    /// The walls with what is open in them; `None` where nothing is run.
    pub(crate) async fn walls(&self, outside: &Outside, zones: &Zones) -> Option<&Walls> {
        let sandbox = self.sandbox(&outside.isolation).await?;
        let make = || async {
            let folder = PathBuf::from(outside.place.working_folder());
            Walls::new(sandbox.clone(), zones.clone(), folder)
        };
        Some(self.walls.get_or_init(make).await)
    }

    /// Whether single files can be kept out of a program's sight.
    pub(crate) async fn can_mask(&self, isolation: &Isolation) -> bool {
        match self.sandbox(isolation).await.map(Sandbox::level) {
            Some(Some(Level::BwrapLandlock | Level::Landlock)) | None => true,
            Some(Some(Level::None) | None) => false,
        }
    }
}
