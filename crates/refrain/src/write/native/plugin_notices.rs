//! Tells once of what plug-ins have to do with a new archive that nobody would expect.

use refrain_codec::{BlockPlan, FallbackReason, FilterPlan, FilterStep};
use refrain_format::BlockHeader;

use crate::progress::Watch;
use crate::store::coding::plugins_of;

/// What was told.
#[derive(Default)]
pub(crate) struct PluginNotices {
    of_fallback: bool,
    of_absence: bool,
}

impl PluginNotices {
    /// Tells of a block that was planned so: of the first that has to do without its codec or
    /// filters, and of the first that needs a plug-in although the archive `is_carrying` decoders.
    pub(crate) fn tell(
        &mut self,
        header: &BlockHeader,
        plan: &BlockPlan,
        is_carrying: bool,
        watch: &dyn Watch,
    ) {
        if let Some(what) = fallback(header, plan)
            && !std::mem::replace(&mut self.of_fallback, true)
        {
            let block = header.block_id;
            watch.notice(&format!(
                "block {block} does without {what}; other blocks may do so too"
            ));
        }
        if is_carrying
            && let Some((role, name)) = plugins_of(&header.coding).next()
            && !std::mem::replace(&mut self.of_absence, true)
        {
            watch.notice(&format!(
                "the archive carries no decoder for {role}, which is that of the plug-in '{name}': \
                 it cannot be read without the plug-in"
            ));
        }
    }
}

/// What a block does without, and why. That codecs of this build get less memory than planned is
/// usual, and nobody would tell from outside why a plug-in is not used.
fn fallback(header: &BlockHeader, plan: &BlockPlan) -> Option<String> {
    let filters = match plan.filters {
        FilterPlan::Fixed(filters) => Some(filters),
        FilterPlan::None | FilterPlan::Trial => None,
    };
    let codec = plan.codec;
    let with_plugin = filters.filter(|filters| {
        let mut steps = filters.steps();
        steps.any(|step| FilterStep::PLUGINS.contains(&step.id()))
    });
    match FallbackReason::from_number(header.coding.fallback())? {
        FallbackReason::CodecFailed => Some(format!(
            "codec {codec}, which does not encode it, or not to what decodes to the same bytes"
        )),
        FallbackReason::FilterFailed => Some(format!("filter {}, which fails on it", filters?)),
        FallbackReason::MemoryLimit if codec.is_plugin() => Some(format!(
            "codec {codec}, which states that it needs more memory than there is for a block"
        )),
        FallbackReason::MemoryLimit => Some(format!(
            "filter {}, which states that it needs more memory than there is for a block",
            with_plugin?
        )),
        FallbackReason::Incompressible
        | FallbackReason::NotSmaller
        | FallbackReason::SettingsReduced => None,
    }
}
