import type { CommandOf } from '#bus/messages/session.ts';
import { MAX_LABELS, type SessionRecord } from '#shared/contracts/agent/session.ts';
import { changedMetadata, isTooLarge } from './metadata.ts';

type Patch = CommandOf<'session.patch'>;

/** Leaves `updated_at` to the caller. */
export function patchRecord(record: SessionRecord, patch: Patch): SessionRecord {
  return {
    ...record,
    title: patch.title === undefined ? record.title : patch.title,
    mode: patch.mode ?? record.mode,
    metadata: changedMetadata(record.metadata, patch),
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
  if (isLarger && isTooLarge(changedMetadata(record.metadata, patch))) return 'metadata is not valid: a session has at most 1 MiB of it';
  return null;
}

/** Without duplicates; existing labels keep their positions. */
function labelsOf({ labels }: SessionRecord, { upsertLabels, removeLabels }: Patch): string[] {
  if (upsertLabels.length === 0 && removeLabels.length === 0) return labels;
  const removed = new Set(removeLabels);
  return [...new Set([...labels, ...upsertLabels])].filter((label) => !removed.has(label));
}
