import { z } from 'zod';
import { providerIdentity } from '#shared/config/router-config.ts';
import { httpUrl } from '#shared/contracts/manifest/hosts.ts';
import { secretRef } from '#shared/contracts/manifest/secret-ref.ts';
import { EXTENSIONS } from './extensions.ts';

export const openAiCompatibleConfig = z.strictObject({
  ...providerIdentity,
  kind: z.literal('openai-compatible'),
  base_url: httpUrl,
  /** Absent for upstreams without authentication, such as a local model server. */
  api_key: secretRef.optional(),
  /** Of the API, which few servers have. Absent: those of openrouter.ai for its address, and none elsewhere. */
  extensions: z.array(z.enum(EXTENSIONS)).optional(),
  /** Absent: not known, and requests that deny data collection go elsewhere. */
  data_policy: z.strictObject({ trains: z.boolean(), retains: z.boolean() }).optional(),
});
