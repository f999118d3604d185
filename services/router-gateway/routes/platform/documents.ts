import type { FastifyReply } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { documentChecks } from '#shared/config/document-kinds.ts';
import type { DocumentAddress, DocumentRows, PublishedVersion } from '#shared/config/document-rows.ts';
import { formatPath, sentenceOf } from '#shared/config/problems.ts';
import { documentId } from '#shared/contracts/documents/document.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { validation } from '../../plugins/validation.ts';
import { excessOf } from '../../request-bounds.ts';
import { addressIn, isDocumentId, type KindInAddress, kindInAddress, publishableAddress } from './document-address.ts';
import { type PlatformLimits, platformLimits } from './limits.ts';

export interface DocumentsDeps {
  documentRows: DocumentRows;
  limits: PlatformLimits;
}

const ofKind = z.object({ kind: z.string() });
const ofId = ofKind.extend({ id: z.string() });
const ofVersion = ofId.extend({ version: z.string() });
const limit = z.coerce.number().int().min(1).max(platformLimits.pageDocuments).default(platformLimits.defaultPage);
const listQuery = z.object({ limit, cursor: documentId.optional() });
const versionsQuery = z.object({ limit, cursor: z.coerce.number().int().min(1).max(platformLimits.version).optional() });

/**
 * PUT, GET /platform/{kind}/{id}/versions/{version}, GET /platform/{kind}/{id}/versions and GET /platform/{kind}. A version is published once: the same text
 * again answers 200, another one 409.
 */
export function documents({ documentRows, limits }: DocumentsDeps): FastifyPluginAsyncZod {
  return async (app) => {
    app.setValidatorCompiler(validation.compiler);

    app.put('/platform/:kind/:id/versions/:version', { schema: { params: ofVersion } }, async ({ params, body }, reply) => {
      const kind = kindInAddress(params.kind);
      const address = publishableAddress(kind.folder, params);
      refuseInvalid(body, kind, address, limits);
      const { stored, isNew, isSame } = await documentRows.publish(address, body);
      if (!isSame) throw new SwitchyardError('request.conflict', `${nameOf(address)} is published with another text: publish a new version`);
      return withTag(reply, stored)
        .code(isNew ? 201 : 200)
        .send({ kind: address.kind, id: address.id, ...publicOf(stored) });
    });

    app.get('/platform/:kind/:id/versions/:version', { schema: { params: ofVersion } }, async ({ params, headers }, reply) => {
      const address = addressIn(kindInAddress(params.kind).folder, params);
      const stored = address === null ? null : await documentRows.read(address);
      if (stored === null) throw new SwitchyardError('request.not_found', 'There is no document of this id and version');
      withTag(reply, stored);
      if (namesTag(headers['if-none-match'], tagOf(stored))) return reply.code(304).send();
      return reply.type('application/json; charset=utf-8').send(stored.body);
    });

    app.get('/platform/:kind/:id/versions', { schema: { params: ofId, querystring: versionsQuery } }, async ({ params, query }) => {
      const { folder } = kindInAddress(params.kind);
      const page = { below: query.cursor ?? null, limit: query.limit + 1 };
      const found = isDocumentId(params.id) ? await documentRows.versions({ kind: folder, id: params.id }, page) : [];
      if (found.length === 0 && query.cursor === undefined) throw new SwitchyardError('request.not_found', 'There is no document of this id');
      return pageOf(found, query.limit, publicOf, ({ version }) => String(version));
    });

    app.get('/platform/:kind', { schema: { params: ofKind, querystring: listQuery } }, async ({ params, query }) => {
      const { folder } = kindInAddress(params.kind);
      const found = await documentRows.list(folder, { after: query.cursor ?? '', limit: query.limit + 1 });
      return pageOf(
        found,
        query.limit,
        ({ id, versions, ...newest }) => ({ id, versions, newest: publicOf(newest) }),
        ({ id }) => id,
      );
    });
  };
}

/** @throws `request.invalid` naming the first field, and listing all problems */
function refuseInvalid(body: unknown, { kind }: KindInAddress, { id, version }: DocumentAddress, limits: PlatformLimits): void {
  const excess = excessOf(body, limits);
  if (excess !== null) throw new SwitchyardError('request.invalid', excess);
  const { value, problems } = documentChecks[kind](body);
  const all =
    value === null
      ? problems
      : [
          ...(value.id === id ? [] : [{ path: ['id'], expected: 'must be the id of the address' }]),
          ...(value.version === version ? [] : [{ path: ['version'], expected: 'must be the version of the address' }]),
        ];
  const [first] = all;
  if (first === undefined) return;
  const listed = all.slice(0, limits.listedProblems).map(sentenceOf);
  const rest = all.length - listed.length;
  const message = `The document is not valid: ${listed.join('; ')}${rest > 0 ? `; and ${rest} more` : ''}`;
  throw new SwitchyardError('request.invalid', message, { details: { param: formatPath(first.path) } });
}

function nameOf({ kind, id, version }: DocumentAddress): string {
  return `${kind}/${id}, version ${version},`;
}

function publicOf({ version, hash, publishedAt }: PublishedVersion) {
  return { version, etag: tagOf({ hash }), published_at: publishedAt.toISOString() };
}

function tagOf({ hash }: Pick<PublishedVersion, 'hash'>): string {
  return `"${hash}"`;
}

/** A version never changes; the keys may. */
function withTag(reply: FastifyReply, stored: PublishedVersion): FastifyReply {
  return reply.header('etag', tagOf(stored)).header('cache-control', 'private, no-cache');
}

function namesTag(header: string | undefined, tag: string): boolean {
  return (header ?? '').split(',').some((one) => one.trim().replace(/^W\//, '') === tag || one.trim() === '*');
}

function pageOf<Row, Item>(found: readonly Row[], size: number, itemOf: (row: Row) => Item, cursorOf: (row: Row) => string) {
  const rows = found.slice(0, size);
  const last = rows.at(-1);
  const hasMore = found.length > size;
  return { items: rows.map(itemOf), has_more: hasMore, next_cursor: hasMore && last !== undefined ? cursorOf(last) : null };
}
