import { z } from 'zod';
import { secretRef } from '../manifest/secret-ref.ts';

/** How a webhook's deliveries are signed: `<prefix><hex HMAC of the raw body>` in the named header. */
export const webhookSignature = {
  /** Resolved at every delivery, so that rotating the secret needs no restart. */
  secret_env: secretRef,
  header: z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'must be the name of an HTTP header'),
  algorithm: z.enum(['sha256', 'sha1', 'sha512']).default('sha256'),
  prefix: z.string().default(''),
};
