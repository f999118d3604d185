import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { escaped, pageOf } from './plain-page.ts';

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
  /** Compressed when it is first requested: a start would take some 10 ms of CPU for files that may never be. */
  readonly gzipped: Buffer;
}

/** By name: read, and compressed, once in a process, whichever servers have them. */
const filesRead = new Map<string, BuiltFile>();

/**
 * GET /pages/:file: scripts, styles and pictures of the pages. Their names contain hashes of their content, so browsers keep them for a year. Register it in
 * the group that has the checks of the pages.
 */
export function pageFiles(): FastifyPluginAsync {
  return filesAt('/pages/:file', readdirSync(FOLDER).flatMap(fileNamed));
}

/** GET /auth/pages/:file: the styles and the icon of a page, without a key, for `styledForm`. @param name such as `chat.html` */
export function publicStyles(name: string): FastifyPluginAsync {
  return filesAt(
    '/auth/pages/:file',
    lookOf(name).flatMap(({ file }) => fileNamed(file)),
    { isPublic: true },
  );
}

/**
 * A page with a form, of HTML that a server makes, which looks like a page of `web/` and has no script.
 * @param name of the page that it looks like @returns sends it; `body`: HTML
 */
export function styledForm(name: string): (reply: FastifyReply, page: { title: string; body: string }) => FastifyReply {
  const links = lookOf(name).map(({ link }) => link.replace('"/pages/', '"/auth/pages/'));
  return (reply, { title, body }) =>
    reply.headers(pageHeaders("script-src 'none'; ")).send(pageOf(title, `<main class="form">\n<h1>${escaped(title)}</h1>\n${body}\n</main>`, links.join('')));
}

/** A page of `web/`. @param name such as `chat.html` @param title any text @returns sends it */
export function builtPage(name: string, title: string): (request: FastifyRequest, reply: FastifyReply) => FastifyReply {
  const html = readFileSync(new URL(name, FOLDER), 'utf8').replaceAll(TITLE, () => escaped(title));
  const file = builtFile('text/html; charset=utf-8', Buffer.from(html, 'utf8'));
  return (request, reply) => sendFile(file, request, reply.headers(pageHeaders()));
}

/** Everything of the page is this server's own: nothing inline, nothing from or to another host, no frame around it. */
function pageHeaders(more = ''): Record<string, string> {
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'self'; ${more}object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'`,
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
    // Names the files of this very release.
    'cache-control': 'no-store',
  };
}

/** None, or one with its name. */
function fileNamed(name: string): [string, BuiltFile][] {
  const type = TYPES[extname(name)];
  if (type === undefined) return [];
  const file = filesRead.get(name) ?? builtFile(type, readFileSync(new URL(name, FOLDER)));
  filesRead.set(name, file);
  return [[name, file]];
}

/** The tags of a page's styles and icon, and the files that they name. */
function lookOf(name: string): { link: string; file: string }[] {
  const html = readFileSync(new URL(name, FOLDER), 'utf8');
  return [...html.matchAll(/<link rel="(?:icon|stylesheet)"[^>]* href="\/pages\/([^"]+)">/g)].map(([link, file = '']) => ({ link, file }));
}

function filesAt(path: '/pages/:file' | '/auth/pages/:file', all: readonly [string, BuiltFile][], config: { isPublic?: boolean } = {}): FastifyPluginAsync {
  const files = new Map(all);
  return async (app) => {
    app.get<{ Params: { file: string } }>(path, { config }, async (request, reply) => {
      const file = files.get(request.params.file);
      if (file === undefined) throw new SwitchyardError('request.not_found', 'there is nothing at this address');
      reply.headers({ 'content-type': file.type, 'cache-control': 'private, max-age=31536000, immutable', 'x-content-type-options': 'nosniff' });
      return sendFile(file, request, reply);
    });
  };
}

function builtFile(type: string, body: Buffer): BuiltFile {
  let gzipped: Buffer | null = null;
  return {
    type,
    body,
    get gzipped() {
      gzipped ??= gzipSync(body, { level: 9 });
      return gzipped;
    },
  };
}

function sendFile({ body, gzipped }: BuiltFile, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.header('vary', 'accept-encoding');
  const acceptsGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(String(request.headers['accept-encoding'] ?? ''));
  return acceptsGzip ? reply.header('content-encoding', 'gzip').send(gzipped) : reply.send(body);
}
