import { z } from 'zod';
import { providerIdentity } from '#shared/config/router-config.ts';
import { httpUrl } from '#shared/contracts/manifest/hosts.ts';
import { secretRef } from '#shared/contracts/manifest/secret-ref.ts';

export const responsesConfig = z.strictObject({
  ...providerIdentity,
  kind: z.literal('responses'),
  base_url: httpUrl,
  /** Absent for upstreams without authentication. */
  api_key: secretRef.optional(),
  /** Absent: not known, and requests that deny data collection go elsewhere. */
  data_policy: z.strictObject({ trains: z.boolean(), retains: z.boolean() }).optional(),
});
