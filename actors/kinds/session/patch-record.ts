import type { CommandOf } from '#bus/messages/session.ts';
import { MAX_LABELS, type SessionRecord } from '#shared/contracts/agent/session.ts';

/** As a creation's body allows. Each commit writes the metadata, so patches must not grow it without bound. */
const MAX_METADATA_BYTES = 1_024 * 1_024;

type Patch = CommandOf<'session.patch'>;

/** Leaves `updated_at` to the caller. */
export function patchRecord(record: SessionRecord, patch: Patch): SessionRecord {
  return {
    ...record,
    title: patch.title === undefined ? record.title : patch.title,
    mode: patch.mode ?? record.mode,
    metadata: metadataOf(record, patch),
    labels: labelsOf(record, patch),
    consumption_offsets: { client: patch.clientOffset ?? record.consumption_offsets.client },
  };
}

/** A sentence for the sender; null when the patch is valid. */
export function patchProblem(record: SessionRecord, patch: Patch): string | null {
  if (labelsOf(record, patch).length > MAX_LABELS) return `labels is not valid: a session has at most ${MAX_LABELS}`;
  if (patch.clientOffset !== undefined && patch.clientOffset > record.last_offset)
    return `consumption_offsets.client is not valid: the log ends at ${record.last_offset}`;
  const isLarger = Object.keys(patch.setMetadata).length > 0;
  if (isLarger && Buffer.byteLength(JSON.stringify(metadataOf(record, patch))) > MAX_METADATA_BYTES)
    return 'metadata is not valid: a session has at most 1 MiB of it';
  return null;
}

function metadataOf({ metadata }: SessionRecord, { setMetadata, unsetMetadata }: Patch): Record<string, unknown> {
  const unset = new Set(unsetMetadata);
  return Object.fromEntries(Object.entries({ ...metadata, ...setMetadata }).filter(([key]) => !unset.has(key)));
}

/** Without duplicates; existing labels keep their positions. */
function labelsOf({ labels }: SessionRecord, { upsertLabels, removeLabels }: Patch): string[] {
  if (upsertLabels.length === 0 && removeLabels.length === 0) return labels;
  const removed = new Set(removeLabels);
  return [...new Set([...labels, ...upsertLabels])].filter((label) => !removed.has(label));
}
