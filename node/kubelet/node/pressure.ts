export type Pressure = "MemoryPressure" | "DiskPressure" | "PIDPressure";
