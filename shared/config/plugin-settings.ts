import { z } from 'zod';
import { httpUrl } from '../contracts/manifest/hosts.ts';
import { secretRef } from '../contracts/manifest/secret-ref.ts';
import { linearPattern } from '../schema/linear-pattern.ts';

/** Each text of a request is matched against all of them. */
const MAX_PATTERNS = 100;
const MAX_NAME_CHARS = 100;
/** Of one request to an engine, in milliseconds. */
const timeout = z.number().int().min(1).max(60_000).default(10_000);
const name = z.string().min(1).max(MAX_NAME_CHARS);

/** As JSON Schemas have it: matched in linear time, whatever the text. */
const pattern = z
  .strictObject({
    /** Names the pattern in the error of what it matches. */
    reason: name,
    pattern: z.string(),
    ignore_case: z.boolean().default(false),
  })
  .superRefine(({ pattern: text, ignore_case: ignoresCase }, context) => {
    const made = linearPattern(text, ignoresCase ? 'iu' : 'u');
    if ('problem' in made) context.addIssue({ code: 'custom', path: ['pattern'], message: made.problem });
  });

const moderation = z
  .strictObject({
    /** `provider_name` of its refusals. */
    name: name.default('moderation'),
    /** Speaks POST /v1/moderations. */
    endpoint: z
      .strictObject({
        /** Whole, with the path. */
        url: httpUrl,
        api_key: secretRef.optional(),
        /** Absent: the endpoint's own. */
        model: z.string().min(1).optional(),
        timeout_ms: timeout,
      })
      .optional(),
    /** A match in a text refuses the request, without the endpoint. */
    patterns: z.array(pattern).max(MAX_PATTERNS).default([]),
  })
  .refine(({ endpoint, patterns }) => endpoint !== undefined || patterns.length > 0, 'must have an endpoint, or patterns');

/** Engines of the plugins that requests may ask for. A plugin without one is refused. */
export const pluginSettings = z.strictObject({ moderation: moderation.optional() });

export type PluginSettings = z.infer<typeof pluginSettings>;
export type ModerationSettings = NonNullable<PluginSettings['moderation']>;
