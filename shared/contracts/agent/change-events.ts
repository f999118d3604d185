import { z } from 'zod';
import { unknownField } from './unknown-field.ts';
import { wholeNumber } from './whole-number.ts';

/** Body of PATCH /sessions/{id}/events/{event_id}. Strict, since a misspelt field would be lost silently. Removals are applied last. */
export const patchEventRequest = z
  .object({
    metadata: z.object({ set: z.record(z.string(), z.unknown()).default({}), unset: z.array(z.string()).default([]) }).catchall(unknownField),
  })
  .catchall(unknownField);

/** Query of DELETE /sessions/{id}/events; unknown fields are ignored. */
export const deleteEventsQuery = z.object({
  /** The first event at or above it must be the first of its trace. */
  min_offset: wholeNumber,
  /** Cancels a turn in progress. */
  force: z.stringbool().default(false),
});
