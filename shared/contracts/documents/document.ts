import { z } from 'zod';

export const documentId = z.string().regex(/^[A-Za-z0-9_-]{1,128}$/, 'must be 1 to 128 letters, digits, hyphens or underscores');

const version = z.number().int().min(1);

export const documentReference = z.strictObject({ id: documentId, version });
export type DocumentReference = z.infer<typeof documentReference>;

const label = z.string().min(1).max(128);
const labels = z.array(label).default([]);
const metadata = z.record(z.string(), z.unknown()).default({});

/** Fields of every document. A published version never changes: a new text is a new version. */
export const documentHeader = {
  id: documentId,
  version,
  schema_version: z.string().min(1).nullable().default(null),
  title: z.string().default(''),
  description: z.string().default(''),
  labels,
  metadata,
  created_at: z.iso.datetime({ offset: true, error: 'must be a time like 2026-01-31T12:00:00Z' }).nullable().default(null),
};

export const partHeader = { description: z.string().nullable().default(null), labels, metadata };

/** `server:tool`: id of a tool server in the manifest, and the tool's name there. */
export const toolId = z.string().regex(/^[A-Za-z0-9_-]{1,128}:(?!\*$)[^\s:]{1,200}$/, 'must be a tool id like server:tool');

/** A tool id, or `server:*` for every tool of a server. */
export const toolSelector = z.string().regex(/^[A-Za-z0-9_-]{1,128}:[^\s:]{1,200}$/, 'must be a tool id like server:tool, or server:*');

/** `policy:<id>`, `routine:<id>`, or `tag:<label>` for every policy and routine that carries the label. */
export const entityReference = z
  .string()
  .regex(/^(?:(?:policy|routine):[A-Za-z0-9_-]{1,128}|tag:.{1,128})$/, 'must be a reference like policy:<id>, routine:<id> or tag:<label>');
