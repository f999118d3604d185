import { createHmac } from 'node:crypto';
import type { FastifyInstance, LightMyRequestResponse } from 'fastify';

export const WEBHOOK_SECRET = 'hook-secret';
export const SIGNATURE_HEADER = 'x-hub-signature-256';

export function signatureOf(body: string | Buffer, secret = WEBHOOK_SECRET, algorithm = 'sha256'): string {
  return createHmac(algorithm, secret).update(body).digest('hex');
}

/** A delivery as GitHub signs it. `headers` replace those of the signature. */
export async function deliver(
  app: FastifyInstance,
  name: string,
  body: unknown,
  headers: Record<string, string | string[]> | null = null,
): Promise<LightMyRequestResponse> {
  const payload = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const signed = { [SIGNATURE_HEADER]: `sha256=${signatureOf(payload)}` };
  return app.inject({ method: 'POST', url: `/webhooks/${name}`, headers: { 'content-type': 'application/json', ...(headers ?? signed) }, payload });
}
