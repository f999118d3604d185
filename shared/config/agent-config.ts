import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { settings } from './settings.ts';

/** Settings of every process that reads an agent's configuration. */
export const agentSettings = { MANIFEST: settings.MANIFEST, DOCUMENTS: settings.DOCUMENTS, PUBLIC_BASE_URL: settings.PUBLIC_BASE_URL };

/** Relative paths are resolved against the working directory. */
export interface AgentConfig {
  manifestPath: string;
  /** Default: `documents` beside the manifest. */
  documentsPath: string;
  /** Public address of this deployment; a manifest with another platform address is refused. Null: not known. */
  publicBaseUrl: string | null;
}

const shape = z.object(agentSettings);

export function agentConfigOf({ MANIFEST: manifest, DOCUMENTS: documents, PUBLIC_BASE_URL: publicBaseUrl }: z.infer<typeof shape>): AgentConfig {
  const manifestPath = resolve(manifest);
  const documentsPath = documents === undefined ? join(dirname(manifestPath), 'documents') : resolve(documents);
  return { manifestPath, documentsPath, publicBaseUrl: publicBaseUrl ?? null };
}
