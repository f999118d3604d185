import { z } from 'zod';
import { idempotencyKey } from './idempotency-key.ts';

/** As UTF-8 JSON. */
const MAX_RESULT_BYTES = 256 * 1_024;

const object = z.record(z.string(), z.unknown());

/** Body of POST /sessions/{id}/tool_events. Unknown fields are ignored. */
export const toolEventRequest = z.object({
  /** Canonically `service:tool`; any other id is opaque. */
  tool_id: z.string().min(1).max(200),
  arguments: object.nullish(),
  /** Any JSON value, null too. */
  result: z
    .unknown()
    .refine((result) => result !== undefined, 'is required: any JSON value')
    .refine((result) => result === undefined || Buffer.byteLength(JSON.stringify(result)) <= MAX_RESULT_BYTES, 'must have at most 256 KiB as JSON'),
  result_metadata: object.nullish(),
  /** The idempotency key stands in the event's metadata under this name. */
  event_metadata: z.looseObject({ idempotency_key: z.undefined('is reserved: send it as idempotency_key of the body').optional() }).nullish(),
  idempotency_key: idempotencyKey.nullish(),
  trigger_processing: z.boolean().nullish(),
});

/** Reply of POST /sessions/{id}/tool_events. */
export interface ToolEventReply {
  event_id: string;
  offset: number;
  /** RFC 3339 in UTC (`Z`), with milliseconds. */
  creation_utc: string;
  trace_id: string;
}
