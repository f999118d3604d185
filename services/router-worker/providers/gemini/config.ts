import { z } from 'zod';
import { providerIdentity } from '#shared/config/router-config.ts';
import { httpUrl } from '#shared/contracts/manifest/hosts.ts';
import { secretRef } from '#shared/contracts/manifest/secret-ref.ts';

/** Of Google's names: a wrong one would change the path. */
const pathName = z.string().regex(/^[a-z0-9][a-z0-9:._-]{0,99}$/, 'must be lower-case letters, digits, ":", ".", "_" or "-"');

export const geminiConfig = z
  .strictObject({
    ...providerIdentity,
    kind: z.literal('gemini'),
    /** Without version. Absent: Google's own. */
    base_url: httpUrl.optional(),
    /** Of AI Studio. */
    api_key: secretRef.optional(),
    /** In place of a key: Vertex AI, with a bearer token from a file, which another program renews. */
    vertex: z.strictObject({ project: pathName, location: pathName, token_file: z.string().min(1) }).optional(),
    /** Threshold of all categories of harm. Absent: that of the vendor. */
    safety: z.enum(['off', 'block_none', 'block_only_high', 'block_medium_and_above', 'block_low_and_above']).optional(),
    /** Absent: not known, and requests that deny data collection go elsewhere. */
    data_policy: z.strictObject({ trains: z.boolean(), retains: z.boolean() }).optional(),
  })
  .refine(({ api_key: key, vertex }) => (key === undefined) !== (vertex === undefined), {
    path: ['api_key'],
    message: 'must be set, or vertex in its place, and not both',
  });
