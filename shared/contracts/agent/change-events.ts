import { z } from 'zod';
import { unknownField } from './unknown-field.ts';
import { wholeNumber } from './whole-number.ts';

/** In the metadata of tool events: the key of the request that appended them. */
const RESERVED = 'is reserved: idempotency_key can not be changed';

/** Body of PATCH /sessions/{id}/events/{event_id}. Strict, since a misspelt field would be lost silently. Removals are applied last. */
export const patchEventRequest = z
  .object({
    metadata: z
      .object({
        set: z.looseObject({ idempotency_key: z.undefined(RESERVED).optional() }).default({}),
        unset: z.array(z.string().refine((name) => name !== 'idempotency_key', RESERVED)).default([]),
      })
      .catchall(unknownField),
  })
  .catchall(unknownField);

/** Query of DELETE /sessions/{id}/events; unknown fields are ignored. */
export const deleteEventsQuery = z.object({
  /** The first event at or above it must be the first of its turn. */
  min_offset: wholeNumber,
  /** Cancels a turn in progress. */
  force: z.stringbool().default(false),
});
