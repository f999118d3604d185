import { z } from 'zod';
import { documentHeader, toolId } from './document.ts';
import { refuseRepeats } from './refuse-repeats.ts';

/** A segment of a URL path, so without slash. */
export const variableName = z.string().regex(/^[A-Za-z0-9_.-]{1,128}$/, 'must be 1 to 128 letters, digits, dots, hyphens or underscores');

const CRON = /^(?:[0-9A-Za-z*,/-]+\s+){4}[0-9A-Za-z*,/-]+$/;

const variable = z
  .strictObject({
    name: variableName,
    description: z.string().default(''),
    type: z.enum(['string', 'number', 'boolean', 'object', 'array']).default('string'),
    /** null: no value until one is set. */
    default: z.unknown().default(null),
    /** The tool that fetches the value; null: set only over the API. */
    tool_id: toolId.nullable().default(null),
    /** Cron rule by which a fetched value becomes stale; null: never. */
    freshness: z.string().regex(CRON, 'must be a cron rule of five fields, like 0 * * * *').nullable().default(null),
    /** Whether the model sees it. */
    expose: z.boolean().default(true),
  })
  .superRefine((value, context) => {
    const { type, default: given } = value;
    if (given !== null && typeOf(given) !== type) context.addIssue({ code: 'custom', path: ['default'], message: `must be null or fit the type ${type}` });
  });

/** Facts stored between sessions, about one customer, the customers with a tag, or all. */
export const variableSet = z.strictObject({
  ...documentHeader,
  variables: z
    .array(variable)
    .min(1)
    .superRefine(refuseRepeats(({ name }) => name, ['name'])),
});
export type VariableSet = z.infer<typeof variableSet>;

/** The type that a value has, as a variable declares it; that of null is `object`. */
export function typeOf(value: unknown): string {
  return Array.isArray(value) ? 'array' : typeof value;
}
