import { z } from 'zod';
import { customerTag } from './customer.ts';

/** Of a value as JSON. */
const MAX_VALUE_BYTES = 64 * 1_024;

/** Body of PUT of a variable's value. Unknown fields are ignored. */
export const putValueRequest = z.object({
  /** Of the type that the variable set declares. */
  data: z
    .custom<unknown>((data) => data !== undefined, 'is missing; it must be the value')
    .refine((data) => Buffer.byteLength(JSON.stringify(data) ?? '') <= MAX_VALUE_BYTES, 'must have at most 64 KiB as JSON'),
});

/** Whether a key of values is `DEFAULT`, for all customers, or `tag:<tag>`, for those with the tag. Any other is a customer's id. */
export function isSharedKey(key: string): boolean {
  return key === 'DEFAULT' || (key.startsWith('tag:') && customerTag.safeParse(key.slice('tag:'.length)).success);
}

export interface VariableValue {
  name: string;
  data: unknown;
  /** RFC 3339 in UTC (`Z`), with milliseconds. */
  last_modified: string;
}
