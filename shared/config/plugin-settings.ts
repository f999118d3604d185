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

/** A name, or names joined by dots for what is inside of objects. */
const fieldPath = z.string().regex(/^[A-Za-z_][\w-]{0,63}(\.[A-Za-z_][\w-]{0,63}){0,4}$/, 'must be the name of a field, or names joined by "."');

/** How an engine with fields of its own is reached. */
const access = {
  /** Whole, with the path. */
  url: httpUrl,
  api_key: secretRef.optional(),
  /** In `authorization` the key is a bearer token. */
  key_header: z
    .string()
    .regex(/^[A-Za-z0-9-]{1,64}$/, 'must be the name of a header')
    .default('authorization')
    .overwrite((text) => text.toLowerCase()),
};
const price = z
  .string()
  .regex(/^\d{1,4}(\.\d{1,9})?$/, 'must be a decimal like "0.005"')
  .default('0');

/** One POST of JSON to the engine is a search. */
const web = z.strictObject({
  /** As requests name it in `engine`. */
  name: z.string().regex(/^(?!native$)[a-z0-9][a-z0-9_-]{0,63}$/, 'must be lower-case letters, digits, "_" or "-", and not "native"'),
  ...access,
  /** US dollars per search. */
  price,
  timeout_ms: timeout,
  /** The text of the user is cut at so many characters. */
  max_query_chars: z.number().int().min(1).max(10_000).default(400),
  /** Where the request has what; `also` is sent with each. */
  request: z
    .strictObject({
      query: fieldPath.default('query'),
      max_results: fieldPath.default('max_results'),
      /** Of what limits a search. Absent: the engine has no such field, and a request with that limit is refused. */
      include_domains: fieldPath.optional(),
      exclude_domains: fieldPath.optional(),
      user_location: fieldPath.optional(),
      also: z.record(z.string(), z.unknown()).default({}),
    })
    .prefault({}),
  /** Where the answer has its list, and each result its texts. */
  response: z
    .strictObject({
      results: fieldPath.default('results'),
      url: fieldPath.default('url'),
      title: fieldPath.default('title'),
      content: fieldPath.default('content'),
    })
    .prefault({}),
});

/** One POST of JSON to the engine, with a PDF as a data URL, is a reading. */
const ocr = z.strictObject({
  /** As requests name it in `pdf.engine`. */
  name: z.string().regex(/^[a-z0-9-]{1,60}-ocr$/, 'must be lower-case letters, digits or "-", and end in "-ocr"'),
  ...access,
  /** US dollars per page. */
  price,
  timeout_ms: z.number().int().min(1).max(300_000).default(60_000),
  /** Where the request has the file; `also` is sent with each. */
  request: z.strictObject({ document: fieldPath.default('document.document_url'), also: z.record(z.string(), z.unknown()).default({}) }).prefault({}),
  /**
   * Where the answer has its list of pages, and each page its text and its list of pictures, which have base64 or a data URL in `image`. Without `images`
   * there are none.
   */
  response: z
    .strictObject({
      pages: fieldPath.default('pages'),
      text: fieldPath.default('markdown'),
      images: fieldPath.optional(),
      image: fieldPath.default('image_base64'),
    })
    .prefault({}),
});

/** Engines of the plugins that requests may ask for. A plugin without one is refused; `file-parser` has two of its own. */
export const pluginSettings = z.strictObject({ moderation: moderation.optional(), web: web.optional(), file_parser: z.strictObject({ ocr }).optional() });

export type PluginSettings = z.infer<typeof pluginSettings>;
export type ModerationSettings = NonNullable<PluginSettings['moderation']>;
export type WebSearchSettings = NonNullable<PluginSettings['web']>;
export type OcrSettings = NonNullable<PluginSettings['file_parser']>['ocr'];
