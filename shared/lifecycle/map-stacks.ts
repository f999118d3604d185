import { mappedStack } from './mapped-stack.ts';
import { SourcePositions } from './source-positions.ts';

const positions = new SourcePositions();

/**
 * Stacks name the sources. It is loaded before each program (scripts/build-programs.mjs), in place of `--enable-source-maps`, which reads all maps of a
 * program when it starts and keeps them (docs/adr/0160).
 */
Error.prepareStackTrace = (error, sites) => mappedStack(error, sites, positions);
