import { z } from 'zod';
import { providerIdentity } from '#shared/config/router-config.ts';
import { httpUrl } from '#shared/contracts/manifest/hosts.ts';
import { secretRef } from '#shared/contracts/manifest/secret-ref.ts';

export const anthropicConfig = z.strictObject({
  ...providerIdentity,
  kind: z.literal('anthropic'),
  /** Without `/v1`. Absent: Anthropic's own. */
  base_url: httpUrl.optional(),
  api_key: secretRef,
  /** `bearer`: the credential is an OAuth token, or one of a gateway. Absent: `x-api-key`. */
  auth: z.enum(['x-api-key', 'bearer']).optional(),
  /** Values of the header `anthropic-beta`. */
  beta: z.array(z.string().regex(/^[\w.-]{1,100}$/, 'must be letters, digits, ".", "_" or "-"')).optional(),
  /** True: arguments of tool calls are streamed as they are generated, before they are known to be valid JSON. */
  eager_tool_arguments: z.boolean().optional(),
  /** Absent: not known, and requests that deny data collection go elsewhere. */
  data_policy: z.strictObject({ trains: z.boolean(), retains: z.boolean() }).optional(),
});
