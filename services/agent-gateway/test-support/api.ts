import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { BEARER } from './test-deployment.ts';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Sends a request with the agent's key. @param key the idempotency key */
export async function send(app: FastifyInstance, method: Method, url: string, body?: unknown, key?: string): Promise<LightMyRequestResponse> {
  const headers = {
    ...BEARER,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(key === undefined ? {} : { 'idempotency-key': key }),
  };
  return app.inject({ method, url, headers, ...(body === undefined ? {} : { payload: JSON.stringify(body) }) });
}
