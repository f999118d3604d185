import { inOneProcess } from '../helpers/deployment-under-test.ts';
import { deploymentCases } from './deployment/deployment-cases.ts';

deploymentCases(inOneProcess);
