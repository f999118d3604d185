import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { settings } from './settings.ts';

/** What every process that reads an agent's configuration is told of it. */
export const agentSettings = { MANIFEST: settings.MANIFEST, DOCUMENTS: settings.DOCUMENTS, PUBLIC_BASE_URL: settings.PUBLIC_BASE_URL };

/** Where an agent's files are. Relative paths are taken from the folder that the process was started in. */
export interface AgentConfig {
  manifestPath: string;
  /** Beside the manifest unless it is given. */
  documentsPath: string;
  /** Where this deployment is reached from outside; a manifest whose platform is elsewhere is refused. Null: not known. */
  publicBaseUrl: string | null;
}

const shape = z.object(agentSettings);

export function agentConfigOf({ MANIFEST: manifest, DOCUMENTS: documents, PUBLIC_BASE_URL: publicBaseUrl }: z.infer<typeof shape>): AgentConfig {
  const manifestPath = resolve(manifest);
  const documentsPath = documents === undefined ? join(dirname(manifestPath), 'documents') : resolve(documents);
  return { manifestPath, documentsPath, publicBaseUrl: publicBaseUrl ?? null };
}
