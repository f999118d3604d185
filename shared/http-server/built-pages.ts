import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { escaped } from './plain-page.ts';

/** What `web/` is built to; it is checked in, and the build copies it. */
const FOLDER = new URL('../../web/built/', import.meta.url);
const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** In place of the title in the HTML. */
const TITLE = '%TITLE%';

interface BuiltFile {
  type: string;
  body: Buffer;
  gzipped: Buffer;
}

/**
 * GET /pages/:file: scripts, styles and pictures of the pages. Their names contain hashes of their content, so browsers keep them for a year. Register it in
 * the group that has the checks of the pages.
 */
export function pageFiles(): FastifyPluginAsync {
  const files = new Map<string, BuiltFile>();
  for (const name of readdirSync(FOLDER)) {
    const type = TYPES[extname(name)];
    if (type !== undefined) files.set(name, builtFile(type, readFileSync(new URL(name, FOLDER))));
  }
  return async (app) => {
    app.get<{ Params: { file: string } }>('/pages/:file', async (request, reply) => {
      const file = files.get(request.params.file);
      if (file === undefined) throw new SwitchyardError('request.not_found', 'there is nothing at this address');
      reply.headers({ 'content-type': file.type, 'cache-control': 'private, max-age=31536000, immutable', 'x-content-type-options': 'nosniff' });
      return sendFile(file, request, reply);
    });
  };
}

/** A page of `web/`. @param name such as `chat.html` @param title any text @returns sends it */
export function builtPage(name: string, title: string): (request: FastifyRequest, reply: FastifyReply) => FastifyReply {
  const html = readFileSync(new URL(name, FOLDER), 'utf8').replaceAll(TITLE, () => escaped(title));
  const file = builtFile('text/html; charset=utf-8', Buffer.from(html, 'utf8'));
  return (request, reply) => sendFile(file, request, reply.headers(builtPageHeaders()));
}

/** Everything of the page is this server's own: nothing inline, nothing from or to another host, no frame around it. */
function builtPageHeaders(): Record<string, string> {
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
    // Names the files of this very release.
    'cache-control': 'no-store',
  };
}

function builtFile(type: string, body: Buffer): BuiltFile {
  return { type, body, gzipped: gzipSync(body, { level: 9 }) };
}

function sendFile({ body, gzipped }: BuiltFile, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.header('vary', 'accept-encoding');
  const acceptsGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(String(request.headers['accept-encoding'] ?? ''));
  return acceptsGzip ? reply.header('content-encoding', 'gzip').send(gzipped) : reply.send(body);
}
