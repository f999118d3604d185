import { z } from 'zod';
import { unknownField } from './unknown-field.ts';
import { wholeNumber } from './whole-number.ts';

export const MAX_TAGS = 100;
/** Of a customer's metadata as JSON, whatever the number of patches. */
const MAX_CUSTOMER_METADATA_BYTES = 64 * 1_024;

/** Columns of text can't hold NUL, and ids and tags are segments of paths: no control characters, and no halves of surrogate pairs. */
const plainText = (most: number) => new RegExp(`^[^\\p{Cc}\\p{Cs}]{1,${most}}$`, 'u');

const name = z.string().regex(plainText(500), 'must have 1 to 500 characters, none of them a control character');
const externalId = z.string().regex(plainText(256), 'must have 1 to 256 characters, none of them a control character');

/** A tag of customers. With `tag:` before it, it is still a segment of a path. */
export const customerTag = z.string().max(100).regex(plainText(100), 'must have 1 to 100 characters, none of them a control character');

/** Values of variables have keys beside ids, `DEFAULT` and `tag:<tag>`; `.` and `..` are no segments of a path. */
const isReserved = (id: string) => id === 'DEFAULT' || id.startsWith('tag:') || id === '.' || id === '..';

export const customerId = z
  .string()
  // 128 characters as the server counts them in a path.
  .max(128)
  .regex(plainText(128), 'must have 1 to 128 characters, none of them a control character')
  .refine((id) => !isReserved(id), 'must not be "DEFAULT", "." or "..", nor begin with "tag:"');

/** Of a session that begins without a customer. */
export function guestIdOf(sessionId: string): string {
  return sessionId.replace(/^ses_/, 'cus_');
}

export function isGuestOf(sessionId: string, customer: string): boolean {
  return customer === guestIdOf(sessionId);
}

const metadata = z.record(z.string(), z.unknown());
const tags = z
  .array(customerTag)
  .max(MAX_TAGS)
  .transform((given) => [...new Set(given)]);

/** Whether metadata is within its limit. */
export function fitsCustomer(given: Record<string, unknown>): boolean {
  return Buffer.byteLength(JSON.stringify(given)) <= MAX_CUSTOMER_METADATA_BYTES;
}

/** Body of POST /customers. Unknown fields are ignored. */
export const createCustomerRequest = z.object({
  /** Absent: a new one. */
  id: customerId.optional(),
  name,
  external_id: externalId.nullable().default(null),
  tags: tags.default([]),
  metadata: metadata.refine(fitsCustomer, 'must have at most 64 KiB as JSON').default({}),
});

/** Body of PATCH /customers/{id}; absent fields stay unchanged. Strict, since a misspelt field would be lost silently. Removals are applied last. */
export const patchCustomerRequest = z
  .object({
    name: name.optional(),
    /** Null: none. */
    external_id: externalId.nullable().optional(),
    tags: z
      .object({ add: tags.default([]), remove: z.array(z.string()).default([]) })
      .catchall(unknownField)
      .optional(),
    metadata: z
      .object({ set: metadata.default({}), unset: z.array(z.string()).default([]) })
      .catchall(unknownField)
      .optional(),
  })
  .catchall(unknownField);

/** Query of GET /customers. An absent field does not filter; unknown fields are ignored. */
export const listCustomersQuery = z.object({
  /** Only the customer that has this id in your own records. */
  external_id: externalId.optional(),
  /** By creation: newest first, or oldest first. */
  sort: z.enum(['desc', 'asc']).default('desc'),
  /** Entries of a page, 1 to 200. Absent: 50. */
  limit: wholeNumber.pipe(z.number().min(1).max(200)).default(50),
  /** `next_cursor` of the page before. */
  cursor: z.string().max(512).optional(),
});

export interface CustomerRecord {
  id: string;
  name: string;
  /** In the caller's own records; null: none. */
  external_id: string | null;
  tags: string[];
  metadata: Record<string, unknown>;
  /** RFC 3339 in UTC (`Z`), with milliseconds. */
  created_at: string;
  updated_at: string;
  /** Whether it was made for one run, with whose session it is deleted. */
  ephemeral: boolean;
}
