import type { z } from 'zod';
import { type CustomerRecord, fitsCustomer, MAX_TAGS, type patchCustomerRequest } from '#shared/contracts/agent/customer.ts';
import { invalidField } from '../plugins/error-reply.ts';

/** The record with the changes; its times are left to the row. @throws `request.invalid` for a change beyond a limit */
export function changedCustomer(record: CustomerRecord, patch: z.infer<typeof patchCustomerRequest>): CustomerRecord {
  const tags = withTags(record.tags, patch.tags);
  if (tags.length > MAX_TAGS) throw invalidField('/tags/add', `must not exceed the limit: a customer has at most ${MAX_TAGS} tags`);
  const metadata = withMetadata(record.metadata, patch.metadata);
  // Less than before is always accepted.
  if (Object.keys(patch.metadata?.set ?? {}).length > 0 && !fitsCustomer(metadata))
    throw invalidField('/metadata/set', 'must not exceed the limit: a customer has at most 64 KiB of metadata');
  const externalId = patch.external_id === undefined ? record.external_id : patch.external_id;
  return { ...record, name: patch.name ?? record.name, external_id: externalId, tags, metadata };
}

function withTags(tags: readonly string[], changes: z.infer<typeof patchCustomerRequest>['tags']): string[] {
  const removed = new Set(changes?.remove);
  return [...new Set([...tags, ...(changes?.add ?? [])])].filter((tag) => !removed.has(tag));
}

function withMetadata(metadata: Record<string, unknown>, changes: z.infer<typeof patchCustomerRequest>['metadata']): Record<string, unknown> {
  const removed = new Set(changes?.unset);
  return Object.fromEntries(Object.entries({ ...metadata, ...changes?.set }).filter(([key]) => !removed.has(key)));
}
