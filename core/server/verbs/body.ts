/** The object in a request's body: decoded, checked as fieldValidation asks, and defaulted. */
import { FACTS } from "../../api/schema/facts.ts";
